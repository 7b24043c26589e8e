"""What would settle a race, with numbers worked out by hand: at 90 % the normal reach is 1.645."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_advice import made_up_advice, made_up_race

from taskmix.adviser._advice import Advice
from taskmix.adviser._settling import WhatSettles, what_settles

SCORES = {"uniform": [0.90, 0.90], "single": [0.88, 0.88], "size": [0.80, 0.80]}


def settling(gap: float = 0.02, noise: float = 0.01, **other: Any) -> WhatSettles:
    found = what_settles(open_advice(gap, noise, **other))
    assert found is not None
    return found


def open_advice(gap: float, noise: float, seeds: int = 2, **other: Any) -> Advice:
    race = made_up_race(
        {"uniform": 0.0, "single": gap, "size": 0.1}, out=["size"], noise=noise, seeds=seeds
    )
    scores = {name: some[:seeds] for name, some in SCORES.items()}
    return made_up_advice(scores, race=race, **other)


def test_a_race_that_is_over_needs_nothing() -> None:
    race = made_up_race({"uniform": 0.0, "single": 0.1}, out=["single"])
    assert (
        what_settles(made_up_advice({k: SCORES[k] for k in ("uniform", "single")}, race=race))
        is None
    )


def test_one_seed_each_asks_for_a_second() -> None:
    found = settling(seeds=1)
    assert found.batches == 2 * 800, "one of each of the two that are open"
    assert found.words == "A second seed of each would take a budget of 9600-steps."


def test_seeds_settle_what_only_seeds_blur() -> None:
    # 2 (1.645 · 0.02 / 0.02)² = 5.4: six seeds of each of two ways, of which two are done.
    found = settling(gap=0.02, noise=0.02)
    assert found.batches == 4 * 2 * 800
    assert found.rows is None
    assert found.words == (
        "To settle it: a budget of 14400-steps with --steps 800, about 6 seeds of each."
    )


def test_dev_rows_that_are_too_few_are_not_helped_by_seeds() -> None:
    # Rows tell 1.645 · 0.02 = 0.033 apart: (0.0329 / 0.01)² = 10.8 times as many would tell 0.01.
    found = settling(gap=0.01, row_error=0.02)
    assert found.batches is None
    assert found.rows == pytest.approx((1.644854 * 2) ** 2, rel=1e-4)
    assert found.words == (
        "More seeds would not settle it: the 800 dev rows tell ways apart that differ by 0.033, and "
        "these differ by about 0.010. About 11 times as many would."
    )


def test_a_difference_that_no_rows_would_show_is_small() -> None:
    found = settling(gap=0.001, row_error=0.02)
    assert (found.batches, found.rows) == (None, None)
    assert found.words == "Whatever the difference is, it is small: about 0.001."


def test_a_difference_that_no_budget_would_show_is_small() -> None:
    found = settling(gap=0.0001, noise=0.02)
    assert found.words == "Whatever the difference is, it is small: about 0.000."
    assert settling(gap=0.0, noise=0.02).batches is None


def test_curves_that_go_on_otherwise_ask_for_runs_of_the_whole_length() -> None:
    # Curves may be off by 1.645 · 0.03 > 0.02; runs of 3200 batches have no such error, and
    # 2 (1.645 · 0.01 / 0.02)² = 1.35 asks for two seeds, none of which is done.
    found = settling(gap=0.02, noise=0.01, curve_error=0.03, length=3200)
    assert found.batches == 2 * 2 * 3200
    assert found.words == (
        "To settle it: a budget of 20800-steps with --steps 3200, as long as the training will be, "
        "about 2 seeds of each."
    )


def test_rows_take_their_part_of_the_gap_before_seeds_do() -> None:
    # Of 0.02 rows leave sqrt(0.02² - (1.645 · 0.01)²) = 0.01137: 2 (1.645 · 0.01 / 0.01137)² = 4.2.
    found = settling(gap=0.02, noise=0.01, row_error=0.01)
    assert found.batches == (5 - 2) * 2 * 800
