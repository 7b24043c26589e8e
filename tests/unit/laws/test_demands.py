from __future__ import annotations

import numpy as np
import pytest
from test_disqualified import front_of

from taskmix.errors import OptionError
from taskmix.laws import LawRegressor, SearchOptions, parse_formula
from taskmix.laws._forms import Program
from taskmix.laws._judging import Box, Demands, Holding
from taskmix.laws._judging._demands import why_demands_break

SQUARE = Box({"n": (1.0, 100.0), "T": (1.0, 100.0)}, "within the range asked for")
MIDDLE = {"n": 10.0, "T": 10.0}


@pytest.mark.parametrize("formula", ["n*T", "n - 0.01*n^2", "n/T", "T/n", "n*(20 - T)", "log(n*T)"])
@pytest.mark.parametrize("sign", [1, -1])
def test_slopes_are_those_of_very_many_random_lines(formula: str, sign: int) -> None:
    expression = parse_formula(formula)
    generator = np.random.default_rng(0)
    tasks, first = generator.uniform(1, 100, 50_000), generator.uniform(1, 99, 50_000)
    before, after = (Program(expression).values({"n": n, "T": tasks}) for n in (first, first + 0.5))
    is_broken = bool(np.any(sign * (after - before) < -1e-9))
    demands = Demands(increasing=("n",)) if sign > 0 else Demands(decreasing=("n",))
    found = why_demands_break(expression, demands, SQUARE, MIDDLE)
    assert bool(found) == is_broken
    assert not found or found.startswith("falls with n" if sign > 0 else "rises with n")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("3 - 2/n", ""),
        ("n/(n + T)", ""),
        ("log(n)", "grows without bound with n"),
        ("sqrt(T)/n", "grows without bound with T"),
        ("1 - exp(-n)", ""),
    ],
)
def test_a_bounded_law_has_a_finite_limit_in_each_input(formula: str, words: str) -> None:
    found = why_demands_break(parse_formula(formula), Demands(bounded=True), SQUARE, MIDDLE)
    assert found == words


def test_a_law_that_breaks_a_demand_is_not_chosen_and_the_front_says_why() -> None:
    n = np.linspace(1.0, 10.0, 60)
    y = 5 + 2 * n - 0.11 * n**2 + 0.05 * np.random.default_rng(0).normal(size=60)
    formulas = ["5 + 2*n - 0.1*n^2", "4 + 4*log(n)"]
    columns = {"n": n}
    box = Box.asked(columns, {"n": (1.0, 20.0)})
    assert "n^2" in front_of(formulas, columns, y, Holding(asked=box)).chosen.text
    demands = Demands(increasing=("n",))
    front = front_of(formulas, columns, y, Holding(asked=box, demands=demands))
    assert "log" in front.chosen.text
    assert any("falls with n" in (row.disqualified or "") for row in front.rows())


def test_the_regressor_takes_demands() -> None:
    n = np.repeat(np.geomspace(1.0, 100.0, 25), 2)
    y = 3 - 2 / np.sqrt(n) + 0.05 * np.random.default_rng(0).normal(size=50)
    search = SearchOptions(rounds=1, beam=1, branches=2)
    law = LawRegressor(search, bounded=True, increasing=("n",)).fit({"n": n}, y).law_
    far = law.predict({"n": [1e6, 1e9]}).values
    assert far[0] == pytest.approx(far[1], rel=0.05)
    assert far[0] <= far[1]


def test_demands_that_cannot_be_are_reported() -> None:
    n = np.arange(1.0, 31.0)
    with pytest.raises(OptionError, match="`increasing` should name inputs"):
        LawRegressor(increasing=("m",)).fit({"n": n}, 3 * n)
    with pytest.raises(OptionError, match="Found both for 'n'"):
        LawRegressor(increasing=("n",), decreasing=("n",)).fit({"n": n}, 3 * n)
