"""Forms of the field: proposed, priced and fitted in any unit."""

from __future__ import annotations

import numpy as np
import pytest

from taskmix.laws import LawRegressor, evaluate_formula, parse_formula
from taskmix.laws._fitting import Observations, fit_constants
from taskmix.laws._forms import (
    Expression,
    Number,
    Power,
    form_length,
    free_numbers,
    has_rounded_exponent,
    is_field_form,
    open_key,
    raise_to,
    substitute,
)
from taskmix.laws._searching._field import field_starts, plainest_field_forms

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
    "formula",
    ["sqrt(n*k + 300*d)", "log(n + sqrt(n))", "n^0.3*(1 - exp(-k/4))/(1 + 2*s)", "1/(3 + log(n))"],
)
def test_other_forms_are_spelt_out(formula: str) -> None:
    assert not is_field_form(free_numbers(parse_formula(formula)))


def test_forms_are_one_whatever_their_numbers() -> None:
    keys = {open_key(parse_formula(text)) for text in ("3*sqrt(n)", "n^0.48", "2*n")}
    assert len(keys) == 1
    assert open_key(parse_formula("n + 2")) != open_key(parse_formula("n"))
    one, other = (
        open_key(parse_formula(text)) for text in ("sqrt((log(T) + 1)*n)", "(log(T) + 2)^0.4*n")
    )
    assert one == other


def test_a_rounded_exponent_is_seen_in_a_sum_only() -> None:
    assert has_rounded_exponent(parse_formula("1.8 + 90*n^-0.25"))
    assert not has_rounded_exponent(parse_formula("90*n^-0.25"))
    assert not has_rounded_exponent(parse_formula("1.8 + 90/sqrt(n)"))


def _table(formula: str, seed: int = 0) -> Observations:
    expression = parse_formula(formula)
    generator = np.random.default_rng(seed)
    ranges = {
        "n": (1e6, 1e10),
        "d": (1e8, 1e12),
        "k": (1, 512),
        "u": (1e8, 1e10),
        "lr": (1e-5, 1e-2),
    }
    columns = {
        name: generator.choice(np.geomspace(*ranges[name], 12), 300)
        for name in sorted(expression.variables)
    }
    target = evaluate_formula(expression, columns)
    return Observations(columns, target * (1 + 0.01 * generator.normal(size=300)), 1 / target)


@pytest.mark.parametrize(
    "formula",
    [
        "0.2 + 0.7*d^0.6/(d^0.6 + 2.5e6)",
        "60*n^-0.12*(1 + 1e-16*n^2)^-0.1",
        "exp(4.2 - 0.15*log(n) - 0.09*log(k) + 0.0035*log(n)*log(k))",
        "1.9 + 521*n^-0.35 + 1488*(u*(1 - exp(-0.06*d/u)))^-0.35",
        "2.3 + 0.06*(log(lr) + 7.5)^2",
    ],
)
def test_a_first_guess_leads_to_the_law_in_the_units_of_the_field(formula: str) -> None:
    data = _table(formula)
    fits = [fit_constants(start, data) for start in field_starts(data)]
    best = min(fit.mean_square for fit in fits)
    # Noise of 1 % has a mean square of 1e-4, of which a fit takes a little away.
    assert best == pytest.approx(1e-4, rel=0.2)


def test_the_plainest_forms_have_every_input() -> None:
    data = _table("1.7 + 400*n^-0.34 + 410*d^-0.28")
    total, product = plainest_field_forms(data)
    assert total.variables == product.variables == {"n", "d"}
    assert fit_constants(total, data).mean_square == pytest.approx(1e-4, rel=0.2)


def test_a_fit_takes_the_same_way_in_any_unit() -> None:
    """In billions or in ones: the same exponents, from the same exponents on."""
    formula = "1.7 + 400*n^-0.34"
    data = _table(formula)
    billions = Observations({"n": data.columns["n"] / 1e9}, data.target, data.weight)
    start = _freed(parse_formula("1 + 2*n^-0.1"))
    one, other = (fit_constants(start, each, steps=12) for each in (data, billions))
    assert one.mean_square == pytest.approx(other.mean_square, rel=1e-6)
    exponents = [
        sorted(node.exponent.value for node in fit.expression.walk() if isinstance(node, Power))  # type: ignore[attr-defined]
        for fit in (one, other)
    ]
    np.testing.assert_allclose(exponents[0], exponents[1], rtol=1e-5)


def _freed(expression: Expression) -> Expression:
    def change(node: Expression) -> Expression | None:
        if isinstance(node, Power) and isinstance(node.exponent, Number):
            return raise_to(node.base, Number(node.exponent.value, free=True))
        return None

    return substitute(free_numbers(expression), change)


def test_a_reciprocal_of_a_sum_is_another_form_than_the_sum() -> None:
    assert open_key(parse_formula("1/(n^0.3 + 2*T)")) != open_key(parse_formula("n^0.3 + 2*T"))
    assert open_key(parse_formula("1/(n + 2)")) == open_key(parse_formula("3*(n + 5)^-0.4"))


def test_two_bowls_whose_middles_move_are_found() -> None:
    generator = np.random.default_rng(0)
    n, rate, batch = (
        each.ravel()
        for each in np.meshgrid(
            np.geomspace(1e7, 1e9, 6), np.geomspace(1e-4, 1e-2, 7), np.geomspace(16, 1024, 6)
        )
    )
    bowls = 0.05 * (np.log(rate) + 0.4 * np.log(n)) ** 2 + 0.03 * (np.log(batch) - 5) ** 2
    loss = 2 + 300 / n**0.3 + bowls + 0.002 * generator.normal(size=len(n))
    law = LawRegressor().fit({"n": n, "rate": rate, "batch": batch}, loss).law_
    far = {"n": [1e10], "rate": [1e10**-0.4], "batch": [np.exp(5.0)]}
    assert law.predict(far).values[0] == pytest.approx(2 + 300 / 1e10**0.3, abs=0.03)
