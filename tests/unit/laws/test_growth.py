from __future__ import annotations

import math

import pytest

from taskmix.laws import parse_formula
from taskmix.laws._forms._growth import growth


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


def test_terms_that_cancel_are_not_guessed_at() -> None:
    assert growth(parse_formula("log(x + 1) - log(x)"), "x", {}) is None
