"""What a formula is: read, written, evaluated, priced; nothing in one from anybody is run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.laws import Expression, evaluate_formula, parse_formula
from taskmix.laws._complexity import complexity, form_length
from taskmix.laws._evaluate import Program
from taskmix.laws._expression import Number, Variable, free
from taskmix.laws._field_form import is_field_form
from taskmix.laws._growth import growth
from taskmix.laws._normal import add, exp, log, multiply, raise_to
from taskmix.laws._parse import free_numbers
from taskmix.laws._print import as_formula, as_latex, as_python

X, Z = Variable("x"), Variable("z")
POINTS = {"x": np.array([0.7, 1.3, 2.9]), "z": np.array([0.4, 1.1, 3.2])}


def test_equal_forms_have_equal_keys_however_they_are_written() -> None:
    assert parse_formula("x*z + 2").key == parse_formula("2 + z*x").key
    assert parse_formula("sqrt(x*z)").key == parse_formula("sqrt(z)*sqrt(x)").key
    assert parse_formula("x/(x*z)").key == parse_formula("1/z").key
    assert parse_formula("log(x^2*z)").key == parse_formula("2*log(x) + log(z)").key
    assert parse_formula("x - x").key == Number(0.0).key


trees = st.recursive(
    st.one_of(
        st.sampled_from([X, Z]),
        st.floats(0.2, 3.0).map(free),
        st.sampled_from([Number(2.0), Number(1.0), Number(-1.0)]),
    ),
    lambda below: st.one_of(
        st.tuples(below, below).map(lambda pair: add(*pair)),
        st.tuples(below, below).map(lambda pair: multiply(*pair)),
        st.tuples(below, st.sampled_from([-1.0, 0.5, 2.0, 1 / 3])).map(
            lambda pair: raise_to(pair[0], Number(pair[1]))
        ),
        below.map(log),
        below.map(lambda node: exp(multiply(Number(-0.1), node))),
    ),
    max_leaves=8,
)


def plainly(node: Expression, point: dict[str, float]) -> complex:
    """An oracle that shares nothing with `Program`: Python's complex numbers, node by node."""
    from taskmix.laws._expression import Exponential, Logarithm, Power, Product, Sum

    match node:
        case Number():
            return complex(node.value)
        case Variable():
            return complex(point[node.name])
        case Sum():
            return sum((plainly(t, point) for t in node.terms), 0j)
        case Product():
            return complex(np.prod([plainly(f, point) for f in node.factors]))
        case Power():
            return plainly(node.base, point) ** plainly(node.exponent, point)
        case Logarithm():
            return complex(np.log(plainly(node.of, point)))
        case Exponential():
            return complex(np.exp(plainly(node.of, point)))
    raise TypeError


@settings(max_examples=150, deadline=None)
@given(trees)
def test_values_are_those_of_complex_arithmetic_where_they_are_real(tree: Expression) -> None:
    values = evaluate_formula(tree, POINTS)
    for place in range(3):
        point = {name: float(column[place]) for name, column in POINTS.items()}
        try:
            wanted = plainly(tree, point)
        except (ZeroDivisionError, OverflowError, ValueError):
            continue
        if np.isfinite(values[place]) and np.isfinite(wanted) and abs(wanted) < 1e12:
            assert values[place] == pytest.approx(wanted.real, rel=1e-6, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(trees)
def test_the_jacobian_is_that_of_finite_differences(tree: Expression) -> None:
    program = Program(tree)
    values, jacobian = program.jacobian(POINTS, program.start)
    if not (np.isfinite(values).all() and np.isfinite(jacobian).all()):
        return
    if jacobian.size == 0 or np.abs(jacobian).max() > 1e4 or np.abs(values).max() > 1e4:
        return
    for place in range(len(program.start)):
        step = 1e-6 * max(abs(program.start[place]), 1e-2)
        up, down = program.start.copy(), program.start.copy()
        up[place] += step
        down[place] -= step
        slope = (program.values(POINTS, up) - program.values(POINTS, down)) / (2 * step)
        if np.isfinite(slope).all():
            np.testing.assert_allclose(jacobian[:, place], slope, rtol=2e-3, atol=2e-3)


@settings(max_examples=100, deadline=None)
@given(trees)
def test_the_text_of_a_formula_reads_back_with_the_same_values(tree: Expression) -> None:
    text = as_formula(tree, digits=17)
    first, second = evaluate_formula(tree, POINTS), evaluate_formula(parse_formula(text), POINTS)
    both = np.isfinite(first) & np.isfinite(second) & (np.abs(first) < 1e12)
    np.testing.assert_allclose(first[both], second[both], rtol=1e-6, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(trees)
def test_new_constants_keep_the_form(tree: Expression) -> None:
    other = tree.with_constants([value + 0.5 for value in tree.constants])
    assert other.key == tree.key
    assert other.constants == tuple(value + 0.5 for value in tree.constants)


def test_the_python_source_is_a_function_of_the_columns() -> None:
    tree = parse_formula("sqrt((log(x) + 0.45)*z/(z + 0.6)) - exp(-x)")
    names: dict[str, object] = {}
    exec(as_python(tree, "law"), names)  # our own text, not a user's
    law = names["law"]
    assert callable(law)
    np.testing.assert_allclose(law(**POINTS), evaluate_formula(tree, POINTS))


def test_formulas_are_written_as_people_do() -> None:
    for text in ("0.69*sqrt(n)", "10/T^0.28 + 4000/n^0.34 + 20", "1 - exp(-0.25*T)", "T^(1/4)/n"):
        assert as_formula(parse_formula(text)) == text
    assert as_latex(parse_formula("sqrt(n)*0.69/(n_b + 2)")) == (
        r"\frac{0.69 \, \sqrt{n}}{\left(\mathrm{n\_b} + 2\right)}"
    )


def test_complexity_counts_what_one_writes_down() -> None:
    assert complexity(parse_formula("0.69*sqrt(n)")) == 4  # 0.69 * sqrt n
    assert complexity(parse_formula("sqrt(20*n*T)")) == 6  # 4.47 * sqrt n * T
    assert complexity(parse_formula("a + b/n^2")) == 7


def test_a_column_that_python_cannot_name_has_an_argument_all_the_same() -> None:
    source = as_python(parse_formula("2*lambda + lambda_ + n² + n_*sqrt(x)"))
    assert "def law(lambda__, lambda_, n_, n__, x):" in source
    there: dict[str, Any] = {}
    exec(compile(source, "law", "exec"), there)
    assert there["law"](1.0, 10.0, 100.0, 1000.0, 4.0) == 2 + 10 + 100 * 2 + 1000


KNOWN = [
    "1.7 + 400*n^-0.34 + 410*d^-0.28",
    "1.7 + 900*n^-0.2*d^-0.12",
    "20*(0.003*n^-0.8 + 1/d)^0.095",
    "0.9*n/(n + 3e8)",
    "0.2 + 0.7*d^0.6/(d^0.6 + 2.5e6)",
    "0.35 + 0.5*(1 - exp(-d/6e10))",
    "60*n^-0.12*(1 + 1e-16*n^2)^-0.1",
    "67*exp(0.0035*log(n)*log(k))*n^-0.15*k^-0.09",
    "1.9 + 521*n^-0.35 + 1488*(u*(1 - exp(-0.06*d/u)))^-0.35",
    "2.1 + 1.3*exp(-3.5*s)",
]


@pytest.mark.parametrize("formula", KNOWN)
def test_published_forms_are_known_and_cost_less_when_a_law_is_chosen(formula: str) -> None:
    form = free_numbers(parse_formula(formula))
    assert is_field_form(form)
    assert form_length(form, 100, choosing=True) < form_length(form, 100)


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("0.69*sqrt(x)", "x^0.5"),
        ("sqrt(log(x) + 0.45)", "log(x)^0.5"),
        ("x/(x + 0.6)", "constant"),
        ("1 - exp(-x/4)", "constant"),
        ("20 + 4000*x^-0.34", "constant"),
        ("x^-0.34", "x^-0.34"),
        ("exp(2*x)*x", "exp(2 x) x"),
        ("log(sqrt(x) + log(x))/0.039", "log(x)"),
        ("sqrt(log(x)/x)", "x^-0.5 log(x)^0.5"),
        ("log(log(x) + 1)", "log(log(x))"),
        ("exp(3*log(x))", "x^3"),
        ("(x^2 + 5*x)/(x + 1)", "x"),
    ],
)
def test_growth_in_one_variable(formula: str, told: str) -> None:
    found = growth(parse_formula(formula), "x", {})
    assert found is not None
    assert found.describe("x") == told


def test_the_limit_tells_where_a_law_goes() -> None:
    def limit(formula: str) -> float:
        found = growth(parse_formula(formula), "x", {"z": 2.0})
        assert found is not None
        return found.limit

    assert limit("20 + 4000*x^-0.34") == 20.0
    assert limit("3 - 2*log(x)") == -math.inf
    assert limit("z*x/(x + 1)") == 2.0
    assert limit("x^-1") == 0.0


REFUSED = [
    "__import__('os').system('true')",
    "n.__class__.__mro__",
    "n.__init__.__globals__",
    "(lambda: 0)()",
    "[n for n in (1,)]",
    "__class__(n)",
    "eval(n)",
    "open(n)",
    "n if n else n",
    "n; n",
    "n := 1",
    "{n}",
    "'n'",
    "n\x00",
    "1e999",
    "n" + "**9" * 600,
    "(" * 1900,
    "(" * 900 + "n" + ")" * 900,
    "log(" * 300 + "n" + ")" * 300,
    "n+" * 5000 + "n",
    "",
    " " * 10_000,
    "\N{FULLWIDTH LEFT PARENTHESIS}n)",
]
ODD = [  # formulas all the same, whatever their values
    "9**9**9",
    "9**9**9**9",
    "n**1e308",
    "exp(exp(exp(9)))",
    "1/0",
    "0**-1",
    "log(-1) + n",
    "1e308*1e308",
    "-" * 1999 + "n",
    "*".join(["(n+1)"] * 300),
    "__builtins__ + n",
]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:24]))
def test_what_is_no_formula_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match="A formula should"):
        parse_formula(text)


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:24]))
def test_huge_numbers_and_towers_are_only_numbers(text: str) -> None:
    columns = {"n": np.array([1.0, 2.0]), "__builtins__": np.array([0.0, 1.0])}
    with np.errstate(all="ignore"):
        values = evaluate_formula(parse_formula(text), columns)
    assert np.broadcast_to(values, (2,)).dtype == np.float64


@given(st.text(alphabet="n1.9e+-*/^() logexpsqrt_'[]{};:=\\\x00²٣ß", max_size=60))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    told = ""
    try:
        tree = parse_formula(text)
    except InputError as error:
        told = str(error)
    if told:
        assert told.startswith("A formula should ")
        return
    assert all(name in text for name in tree.variables)
    compile(as_python(tree), "law", "exec")
