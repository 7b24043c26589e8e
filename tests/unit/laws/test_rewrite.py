from __future__ import annotations

import numpy as np

from taskmix.laws import parse_formula
from taskmix.laws._fitting._fit import Observations, fit_constants
from taskmix.laws._forms._evaluate import Program, evaluate_formula
from taskmix.laws._forms._parse import free_numbers
from taskmix.laws._searching._rewrite import factored, straightened
from taskmix.laws._searching._search import Describer
from taskmix.laws._searching._simplify import simplify

GENERATOR = np.random.default_rng(0)
POINTS = {name: GENERATOR.uniform(1, 5, 300) for name in ("x", "z", "w")}


def test_terms_with_a_factor_in_common_share_it() -> None:
    (found,) = factored(parse_formula("2*x*sqrt(w) + 3*z*sqrt(w) + 5"))
    assert found.key == parse_formula("(2*x + 3*z)*sqrt(w) + 5").key


def test_factors_that_differ_in_a_constant_become_one() -> None:
    (found,) = factored(free_numbers(parse_formula("2*x*exp(-3*w) + 4*z*exp(-3.1*w) + 5")))
    assert len(found.constants) == 4
    assert found.key == free_numbers(parse_formula("(2*x + 4*z)*exp(-3*w) + 5")).key


def test_a_factor_above_the_line_and_one_below_have_nothing_in_common() -> None:
    assert not list(factored(parse_formula("x*w + z/w")))


def test_a_tangent_touches_in_the_middle() -> None:
    expression = parse_formula("3*log(1 + 0.001*x) + 2")
    (line,) = straightened(Program(expression), POINTS)
    middle = {"x": np.array([np.median(POINTS["x"])])}
    np.testing.assert_allclose(
        evaluate_formula(line, middle), evaluate_formula(expression, middle), rtol=1e-12
    )
    np.testing.assert_allclose(
        evaluate_formula(line, POINTS), evaluate_formula(expression, POINTS), rtol=1e-5
    )


def test_a_logarithm_that_hardly_bends_is_simplified_away() -> None:
    target = 2 + 0.3 * POINTS["x"] + 0.01 * GENERATOR.normal(size=300)
    data = Observations(POINTS, target, np.ones(300))
    bent = fit_constants(free_numbers(parse_formula("200*log(1 + 0.0015*x) + 2")), data)
    *_, last = simplify(bent, data, Describer.of(data).length)
    assert last.expression.key == free_numbers(parse_formula("2 + 0.3*x")).key
