from __future__ import annotations

import numpy as np
import pytest

from taskmix.errors import OptionError
from taskmix.laws import LawRegressor, SearchOptions, learn_laws, parse_formula
from taskmix.laws._fitting import Observations, fit_constants
from taskmix.laws._forms import Program, free_numbers
from taskmix.laws._judging import Box, Front, Holding, make_front
from taskmix.laws._judging._disqualify import TargetFacts, why_disqualified
from taskmix.laws._searching import Describer

SQUARE = Box({"n": (1.0, 100.0), "T": (1.0, 100.0)}, "within the range asked for")
MIDDLE = {"n": 10.0, "T": 10.0}
POSITIVE = TargetFacts(1, 1.0)


def front_of(
    formulas: list[str], columns: dict[str, np.ndarray], y: np.ndarray, holding: Holding
) -> Front:
    """The front of given formulas, without a search."""
    data = Observations(columns, y, np.ones(len(y)))
    fits = [fit_constants(free_numbers(parse_formula(text)), data) for text in formulas]
    order = np.random.default_rng(0).permutation(len(y))
    return make_front(
        fits,
        data,
        train=np.sort(order[len(y) // 10 :]),
        held_out=np.sort(order[: len(y) // 10]),
        describer=Describer.of(data),
        target="y",
        noise="absolute",
        range_input=next(iter(columns)),
        holding=holding,
    )


def pole_just_past_the_data() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows up to n = 40 of a law with a pole at n = 46.5, and noise that hides it a little."""
    n = np.repeat(np.linspace(1.0, 40.0, 40), 3)
    y = 100 / (46.5 - n) + 0.2 * np.random.default_rng(0).normal(size=len(n))
    return {"n": n}, y


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("1/(50 - n)", "has a pole at n = 50"),
        ("1/(n - 3)^2", "has a pole at n = 3"),
        ("(50 - n)^(2/3)", "undefined where n > 50"),
        ("log(n - 5)", "undefined where n < 5"),
        ("3 - log(n)", "negative where n > 20.09"),  # e^3
        ("exp(n^2)", "too large to compute"),
        ("n*T - 5", "negative near"),  # no input alone leads there from the middle
    ],
)
def test_the_reason_names_the_input_and_the_place(formula: str, words: str) -> None:
    found = why_disqualified(parse_formula(formula), SQUARE, MIDDLE, POSITIVE)
    assert words in found
    assert found.endswith("within the range asked for")


def test_a_sign_is_free_where_the_target_has_both() -> None:
    assert not why_disqualified(parse_formula("3 - log(n)"), SQUARE, MIDDLE, TargetFacts(0, 1.0))


@pytest.mark.parametrize(
    "formula",
    ["sqrt(n*T)", "n/(n + 5)", "1/(60 - n)", "log(n - T + 30)", "(3*n - T)^0.5", "1/(n - T - 40)"],
)
def test_points_of_the_box_find_what_very_many_random_points_find(formula: str) -> None:
    expression = parse_formula(formula)
    generator = np.random.default_rng(0)
    columns = {name: generator.uniform(1, 100, 200_000) for name in ("n", "T")}
    values = Program(expression).values(columns)
    is_bad = bool(np.any(~np.isfinite(values) | (values < 0)))
    assert bool(why_disqualified(expression, SQUARE, MIDDLE, POSITIVE)) == is_bad


def test_unasked_the_box_reaches_past_the_data_and_inputs_stay_what_they_are() -> None:
    box = Box.around(
        {
            "n": np.array([1000.0, 20000.5]),  # more than a decade: ten times further
            "T": np.array([1.0, 15.0]),  # a count is never below 1
            "ami": np.array([0.2, 0.9]),  # a share stays below 1, and positive
            "x": np.array([-2.0, 2.0]),  # half the range to each side
        }
    )
    assert box.ranges["n"] == (100.0, 200005.0)
    assert box.ranges["T"] == (1.0, 150.0)
    assert box.ranges["ami"] == pytest.approx((0.02, 1.0))
    assert box.ranges["x"] == (-4.0, 4.0)


def test_a_rival_with_a_pole_just_past_the_data_is_not_chosen_where_it_was_asked_to_hold() -> None:
    columns, y = pole_just_past_the_data()
    formulas = ["100/(46.5 - n)", "2*exp(0.05*n) + 1", "0.3*n"]
    free = front_of(formulas, columns, y, Holding())
    assert "46" in free.chosen.text  # it made the rows
    asked = Box.asked(columns, {"n": (1.0, 80.0)})
    front = front_of(formulas, columns, y, Holding(asked=asked))
    assert "exp" in front.chosen.text
    assert not front.warning
    (row,) = [row for row in front.rows() if "/(" in row.formula]
    assert row.disqualified is not None
    assert row.disqualified.startswith("has a pole at n = 46.")
    assert row.disqualified.endswith("within the range asked for")


def test_if_all_laws_are_disqualified_the_best_is_chosen_with_a_warning() -> None:
    columns, y = pole_just_past_the_data()
    asked = Box.asked(columns, {"n": (1.0, 80.0)})
    front = front_of(["100/(46.5 - n)", "3/(1.1 - 0.02*n)"], columns, y, Holding(asked=asked))
    assert front.chosen.disqualified
    assert front.warning.startswith("Every law that was found is disqualified.")


def test_where_nobody_asked_clear_data_outvote_a_wrong_sign() -> None:
    n = np.geomspace(1000.0, 20000.0, 120)
    y = 0.7 - 420 / n + 0.002 * np.random.default_rng(1).normal(size=len(n))
    columns = {"n": n}
    holding = Holding(unasked=Box.around(columns))
    front = front_of(["0.7 - 420/n", "0.7*n/(n + 900)"], columns, y, holding)
    assert front.chosen.text.endswith("/n")
    assert "is negative where n < 600" in front.warning.replace("599.", "600.")[:80]


def test_points_asked_for_widen_the_box() -> None:
    n = np.array([1.0, 40.0])
    assert Box.asked({"n": n}, {}, [{"n": 90.0}, {"n": 0.5}]).ranges == {"n": (0.5, 90.0)}


def test_the_document_keeps_the_ranges_and_what_is_asked_for_has_a_value() -> None:
    n = np.repeat(np.arange(1.0, 21.0), 3)
    y = 30 / (24 - n) + 0.02 * np.random.default_rng(0).normal(size=len(n))
    found = learn_laws(
        {"n": n, "y": y},
        target="y",
        inputs=["n"],
        at={"n": 20},
        to={"n": 40},
        model=LawRegressor(SearchOptions(rounds=1, beam=1, branches=2)),
    )
    assert not found.law.disqualified
    assert found.document.gain is not None
    assert np.isfinite(found.document.gain.value)
    assert found.document.ranges == ("largest n", "smallest n")
    assert any(
        "n = 2" in (row.disqualified or "") for row in found.document.front
    )  # the pole at 24


@pytest.mark.parametrize("box", [{"m": (1, 2)}, {"n": (2, 1)}, {"n": (1, float("inf"))}])
def test_a_box_that_cannot_be_is_told(box: dict[str, tuple[float, float]]) -> None:
    n = np.arange(1.0, 31.0)
    with pytest.raises(OptionError, match="box should"):
        LawRegressor(box=box).fit({"n": n}, 3 * n)
