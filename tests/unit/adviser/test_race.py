from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.adviser._race import pooled_noise, run_race
from taskmix.errors import InputError
from taskmix.numerics import student_quantile


def test_a_race_worked_out_by_hand() -> None:
    # Means of candidates 2 and 5, of seeds 3 and 4: residuals are all 0.5 in size, one degree is left.
    race = run_race({"a": [1.0, 3.0], "b": [5.0, 5.0]}, level=0.9)
    assert race.degrees == 1
    assert race.noise == pytest.approx(1.0)  # sqrt(4 * 0.25 / 1)
    assert race.leader.name == "b"
    behind = race.standing("a").behind
    assert behind.mean == pytest.approx(3.0)
    assert behind.high - 3.0 == pytest.approx(student_quantile(0.9, 1) * 1.0)
    assert race.open == ("b", "a"), "one degree of freedom settles nothing"


def test_what_a_seed_does_to_all_cancels() -> None:
    luck = np.array([0.0, 100.0, -50.0, 7.0])
    small = np.array([0.01, -0.01, 0.0, 0.01])
    race = run_race({"a": luck + small, "b": luck + 1.0, "c": luck + 0.999 - small})
    assert race.open == ("b", "c")
    assert not race.standing("a").is_open


def test_a_candidate_with_few_lucky_seeds_does_not_lead() -> None:
    race = run_race({"lucky": [0.99, 0.98], "long": [0.90, 0.91, 0.90, 0.91]})
    assert race.leader.name == "long"
    assert race.standing("lucky").behind.mean == pytest.approx(-0.08)
    assert race.standing("lucky").is_open


def test_one_seed_each_leaves_all_in_the_race() -> None:
    race = run_race({"a": [0.1], "b": [0.9], "c": [0.5]})
    assert race.open == ("b", "c", "a")
    assert np.isnan(race.noise)


def test_a_single_candidate_wins() -> None:
    race = run_race({"a": [0.5, 0.6]})
    assert race.open == ("a",)


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_noise_of_a_full_table_is_that_of_the_textbook(
    candidates: int, seeds: int, seed: int
) -> None:
    table = np.random.default_rng(seed).normal(size=(candidates, seeds))
    rest = table - table.mean(1, keepdims=True) - table.mean(0, keepdims=True) + table.mean()
    expected = np.sqrt((rest**2).sum() / ((candidates - 1) * (seeds - 1)))
    noise, degrees = pooled_noise(table)
    assert noise == pytest.approx(expected, abs=1e-9)
    assert degrees == (candidates - 1) * (seeds - 1)


@given(st.integers(0, 2**32 - 1), st.floats(-100, 100))
def test_shifting_all_scores_changes_nothing_but_the_means(seed: int, shift: float) -> None:
    table = np.random.default_rng(seed).normal(size=(4, 3))
    names = "abcd"
    before = run_race(dict(zip(names, table.tolist(), strict=True)))
    after = run_race(dict(zip(names, (table + shift).tolist(), strict=True)))
    assert before.open == after.open
    assert after.leader.mean == pytest.approx(before.leader.mean + shift)


def test_the_best_of_equals_is_rarely_dropped() -> None:
    """All candidates are alike: at level 0.9 the true ties stay in at least nine times in ten."""
    generator = np.random.default_rng(0)
    kept = [
        len(run_race({str(c): generator.normal(size=4).tolist() for c in range(6)}).open) == 6
        for _ in range(400)
    ]
    assert np.mean(kept) > 0.8  # the leader is chosen by the same scores, which costs a little


@pytest.mark.parametrize("scores", [{}, {"a": []}, {"a": [float("nan")], "b": [1.0]}])
def test_scores_that_are_none_are_refused(scores: dict[str, list[float]]) -> None:
    with pytest.raises(InputError):
        run_race(scores)
