"""Our formulas against SymPy: values, limits and growth rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taskmix.laws import (
    BOUND_RATES,
    PAPER_LAWS,
    Law,
    evaluate_formula,
    fit_formula,
    parse_formula,
)

sympy = pytest.importorskip("sympy")

FORMULAS = [
    *PAPER_LAWS.values(),
    *BOUND_RATES.values(),
    "20 + 4000*n^-0.34 + 10*T^-0.28",
    "sqrt(n*ami + 300*T)",
    "n^0.37*(1 - exp(-T/4))/(1 + 2*ami)",
    "log(n + 3)*exp(-n/4)",
    "n*log(n)^2/(n + sqrt(n))",
]


def law_of(formula: str) -> Law:
    """A law of just this formula, asked with every other input at 2."""
    tree = parse_formula(formula)
    generator = np.random.default_rng(0)
    columns = {name: generator.uniform(1.5, 9.0, 40) for name in sorted(tree.variables)}
    law = fit_formula("1", columns, generator.uniform(1.0, 2.0, 40))
    return replace(law, expression=tree, typical=dict.fromkeys(tree.variables, 2.0))


@pytest.mark.parametrize("formula", FORMULAS)
def test_values_are_sympys(formula: str) -> None:
    tree = parse_formula(formula)
    generator = np.random.default_rng(0)
    columns = {name: generator.uniform(1.5, 9.0, 5) for name in sorted(tree.variables)}
    function = sympy.lambdify(sorted(tree.variables), law_of(formula).sympy(), "numpy")
    wanted = function(*(columns[name] for name in sorted(tree.variables)))
    np.testing.assert_allclose(evaluate_formula(tree, columns), wanted, rtol=1e-9)


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_leading_term_is_the_one_sympy_divides_by(formula: str) -> None:
    tree = parse_formula(formula)
    for name in sorted(tree.variables):
        found = law_of(formula).growth()[name]
        assert found is not None
        x = sympy.Symbol(name, positive=True)
        others = {sympy.Symbol(k): sympy.Rational(2) for k in tree.variables if k != name}
        exact = sympy.nsimplify(law_of(formula).sympy().subs(others), rational=True)
        exact = exact.subs(sympy.Symbol(name), x)
        leading = sympy.exp(sympy.nsimplify(found.rate) * x ** sympy.nsimplify(found.rate_power))
        leading *= x ** sympy.nsimplify(found.power) * sympy.log(x) ** sympy.nsimplify(
            found.log_power
        )
        ratio = sympy.limit(exact / leading, x, sympy.oo)
        assert float(ratio) == pytest.approx(found.scale, rel=1e-6)
