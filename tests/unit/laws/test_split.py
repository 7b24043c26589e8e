from __future__ import annotations

import numpy as np
import pytest

from taskmix.laws import LawRegressor, evaluate_formula, parse_formula
from taskmix.laws._fitting._fit import Observations, fit_constants
from taskmix.laws._forms._expression import Expression
from taskmix.laws._forms._parse import free_numbers
from taskmix.laws._searching._split import split_starts


def table(formula: str, *, noise: float, rows: int = 400) -> Observations:
    generator = np.random.default_rng(0)
    columns = {name: np.exp(generator.uniform(0, 2.5, rows)) for name in ("u", "v", "w")}
    values = evaluate_formula(parse_formula(formula), columns)
    target = values * (1 + noise * generator.normal(size=rows))
    return Observations(columns, target, 1 / values)


@pytest.mark.parametrize(
    ("formula", "rest"),
    [
        ("sqrt((exp(-u/4) + 0.1*v)/w)", "sqrt(exp(-u/4) + 0.1*v)"),
        ("0.5*log(w) + sqrt(u*v + 3)", "sqrt(u*v + 3)"),
    ],
)
def test_the_rest_is_searched_as_a_law_of_its_own(formula: str, rest: str) -> None:
    data = table(formula, noise=0.001)
    asked: list[Observations] = []

    def search(part: Observations) -> list[Expression]:
        asked.append(part)
        return [fit_constants(free_numbers(parse_formula(rest)), part).expression]

    found = [fit_constants(e, data) for e in split_starts(data, 1.0, search) if e.variables]
    assert {"u", "v"} in [set(part.columns) for part in asked]
    assert min(fit.mean_square for fit in found) < 1.2 * 0.001**2


def test_nothing_is_split_where_a_law_is_as_good_as_any_surface() -> None:
    data = table("u*v/w", noise=0.02)

    def search(part: Observations) -> list[Expression]:
        raise AssertionError("nothing is left to search")

    assert list(split_starts(data, 0.02**2, search)) == []


def test_a_factor_before_a_sum_under_a_root_is_found() -> None:
    formula = "sqrt((exp(-u/4) + 0.1*v)/w)"
    data = table(formula, noise=0.02, rows=200)
    law = LawRegressor().fit(data.columns, data.target).law_
    assert law.same_form(formula), str(law)
