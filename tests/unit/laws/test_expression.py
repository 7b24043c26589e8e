from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import OptionError
from taskmix.laws import parse_formula
from taskmix.laws._forms._complexity import complexity, form_length
from taskmix.laws._forms._evaluate import Program, evaluate_formula
from taskmix.laws._forms._expression import Expression, Number, Variable, free
from taskmix.laws._forms._normal import add, exp, log, multiply, raise_to
from taskmix.laws._forms._parse import free_numbers
from taskmix.laws._forms._print import as_formula, as_latex, as_python

X, Z = Variable("x"), Variable("z")
POINTS = {"x": np.array([0.7, 1.3, 2.9]), "z": np.array([0.4, 1.1, 3.2])}


def test_equal_forms_have_equal_keys_however_they_are_written() -> None:
    assert parse_formula("x*z + 2").key == parse_formula("2 + z*x").key
    assert parse_formula("sqrt(x*z)").key == parse_formula("sqrt(z)*sqrt(x)").key
    assert parse_formula("x/(x*z)").key == parse_formula("1/z").key
    assert parse_formula("log(x^2*z)").key == parse_formula("2*log(x) + log(z)").key
    assert parse_formula("x - x").key == Number(0.0).key


def test_a_free_scale_inside_a_root_joins_the_one_outside() -> None:
    inside = raise_to(add(multiply(free(4.0), X), multiply(free(9.0), Z)), Number(0.5))
    form = multiply(free(3.0), inside)
    assert len(form.constants) == 2
    np.testing.assert_allclose(
        evaluate_formula(form, POINTS), 3 * np.sqrt(4 * POINTS["x"] + 9 * POINTS["z"])
    )


def test_numbers_and_logarithms_leave_an_exponent_as_factors() -> None:
    form = exp(add(multiply(free(0.5), log(X)), multiply(free(-2.0), Z), free(1.0)))
    assert form.key == multiply(free(1.0), raise_to(X, free(0.5)), exp(multiply(free(-2.0), Z))).key
    values = np.exp(0.5 * np.log(POINTS["x"]) - 2 * POINTS["z"] + 1)
    np.testing.assert_allclose(evaluate_formula(form, POINTS), values)


def test_sums_among_the_factors_give_their_scales_to_the_number_in_front() -> None:
    first = add(multiply(free(4.0), X), free(-2.0))
    second = add(multiply(free(-0.5), Z), free(3.0))
    form = multiply(free(2.0), first, second)
    assert len(form.constants) == 3
    values = 2 * (4 * POINTS["x"] - 2) * (3 - 0.5 * POINTS["z"])
    np.testing.assert_allclose(evaluate_formula(form, POINTS), values)


def test_a_free_factor_does_not_untie_a_sum_of_fixed_terms() -> None:
    form = multiply(free(2.0), add(X, raise_to(X, Number(0.5))))
    assert form.constants == (2.0,)
    assert evaluate_formula(form, {"x": np.array([4.0])}).tolist() == [12.0]


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
    from taskmix.laws._forms._expression import Exponential, Logarithm, Power, Product, Sum

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


def test_unusual_signs_cost_more_than_usual_ones() -> None:
    def price(text: str) -> float:
        return form_length(free_numbers(parse_formula(text)), 1000)

    assert price("n^(1/2)") < price("n^(1/3)") < price("n^(3/4)")
    assert price("sqrt(log(n) + 2)") < price("(log(n) + 2)^3")
    assert price("2*n") > price("n")


@pytest.mark.parametrize(
    "text",
    ["", "x +", "foo(x)", "((x", "x y", "2..3", "__import__('os').system('ls')", "x" * 3000,
     "(" * 200 + "x" + ")" * 200, "x = 2", "1e999"],
)  # fmt: skip
def test_what_is_no_formula_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(OptionError, match="formula should"):
        parse_formula(text)


def test_a_column_that_python_cannot_name_has_an_argument_all_the_same() -> None:
    source = as_python(parse_formula("2*lambda + lambda_ + n² + n_*sqrt(x)"))
    assert "def law(lambda__, lambda_, n_, n__, x):" in source
    there: dict[str, Any] = {}
    exec(compile(source, "law", "exec"), there)
    assert there["law"](1.0, 10.0, 100.0, 1000.0, 4.0) == 2 + 10 + 100 * 2 + 1000


@given(st.text(alphabet="x1+-*/^().,e log", max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_formula_or_an_option_error(text: str) -> None:
    try:
        tree = parse_formula(text)
    except OptionError:
        return
    numbers = [node.value for node in tree.walk() if isinstance(node, Number)]
    if np.isfinite(numbers).all():  # what is too large to be told has no text that reads back
        assert parse_formula(as_formula(tree)).variables == tree.variables
    compile(as_python(tree), "law", "exec")
