from __future__ import annotations

import numpy as np
import pytest

from taskmix.adviser import _estimate
from taskmix.adviser._estimate import Estimate
from taskmix.adviser._race import race_of, run_race
from taskmix.errors import InputError


def made_up_estimate(**draws: list[float]) -> Estimate:
    """Draws that are given, so that chances can be counted."""
    return Estimate(tuple(draws), np.array(list(draws.values())).T, noise=0.1, agreement={})


def test_a_race_counted_by_hand() -> None:
    # Of ten draws b is the best in seven, a in three; c never is, but equals b in one of them.
    estimate = made_up_estimate(
        a=[2.0] * 3 + [0.0] * 7, b=[1.0] * 10, c=[0.5] * 9 + [1.0], d=[-1.0] * 10
    )
    race = race_of(estimate, {"a": [0.6], "b": [0.9, 1.1], "c": [0.5], "d": [-1.0]}, level=0.9)
    assert [each.name for each in race.standings] == ["b", "a", "c", "d"]
    assert [each.chance for each in race.standings] == pytest.approx([0.7, 0.3, 0.0, 0.0])
    assert race.leader.mean == pytest.approx(1.0), "as measured, not as estimated"
    assert race.standing("c").behind.mean == pytest.approx(0.45)
    assert race.open == ("b", "a", "c"), "c beats the leader in a tenth, d in none"
    assert not race.is_settled


def test_ways_that_hold_the_best_one_with_the_level_stay_open() -> None:
    # Each rival beats the leader in one of 25 draws: too few alone, and together more than a tenth.
    draws = {f"rival {place}": np.eye(25)[place].tolist() for place in range(3)}
    estimate = made_up_estimate(leader=[0.5] * 25, **draws)
    scores = {way: [0.5] for way in estimate.ways}
    assert race_of(estimate, scores, level=0.9).open == ("leader", "rival 0")  # 22/25, then 23/25
    assert race_of(estimate, scores, level=0.85).is_settled


def test_a_way_that_only_a_cheaper_model_has_run_cannot_lead_and_may_be_the_best() -> None:
    race = race_of(made_up_estimate(known=[0.0] * 4, hoped=[1.0] * 4), {"known": [0.0]})
    assert race.leader.name == "known"
    assert race.open == ("known", "hoped")
    assert race.standing("hoped").seeds == 0
    assert np.isnan(race.standing("hoped").mean)


def test_how_far_a_rung_agrees_is_an_interval_of_its_draws() -> None:
    agreement = {"adapters": np.linspace(-1, 1, 201)}
    estimate = Estimate(("a",), np.zeros((201, 1)), noise=0.1, agreement=agreement)
    found = race_of(estimate, {"a": [0.0]}, level=0.9).agreement["adapters"]
    assert (found.mean, found.low, found.high) == pytest.approx((0.0, -0.9, 0.9))


def test_what_a_seed_does_to_all_cancels() -> None:
    luck = np.array([0.0, 100.0, -50.0, 7.0])
    small = np.array([0.01, -0.01, 0.0, 0.01])
    race = run_race({"a": luck + small, "b": luck + 1.0, "c": luck + 0.999 - small})
    assert set(race.open) == {"b", "c"}
    assert race.noise < 0.1


def test_one_seed_each_leaves_all_in_the_race() -> None:
    race = run_race({"a": [0.1], "b": [0.9], "c": [0.5]})
    assert race.open == ("b", "c", "a")
    assert race.standing("a").behind.high > race.standing("a").behind.mean


def test_clear_differences_settle_a_race() -> None:
    race = run_race({"a": [0.90, 0.91, 0.90], "b": [0.80, 0.80, 0.81], "c": [0.70, 0.71, 0.70]})
    assert race.open == ("a",)
    assert race.is_settled
    assert race.leader.chance > 0.95
    assert race.standing("b").behind.mean == pytest.approx(0.1, abs=0.01)


def test_a_single_way_wins() -> None:
    race = run_race({"a": [0.5, 0.6]})
    assert race.open == ("a",)
    assert race.leader.chance == 1.0


def test_one_that_leads_of_many_by_noise_is_drawn_back_to_them() -> None:
    scores = np.random.default_rng(1).normal(size=(8, 2))
    race = run_race({str(way): row.tolist() for way, row in enumerate(scores)})
    measured = np.sort(scores.mean(axis=1))[::-1]
    ahead = np.mean([each.behind.mean for each in race.standings[1:]])
    assert ahead < 0.8 * np.mean(measured[0] - measured[1:])


@pytest.mark.parametrize("shift", [-100.0, 0.5])
def test_shifting_all_scores_changes_nothing_but_the_means(shift: float) -> None:
    table = np.random.default_rng(2).normal(size=(4, 3))
    before, after = (
        run_race(dict(zip("abcd", (table + by).tolist(), strict=True))) for by in (0.0, shift)
    )
    assert [each.name for each in before.standings] == [each.name for each in after.standings]
    assert before.open == after.open
    for one, other in zip(before.standings, after.standings, strict=True):
        assert other.mean == pytest.approx(one.mean + shift)
        assert other.behind.mean == pytest.approx(one.behind.mean, abs=1e-6)
        assert other.chance == pytest.approx(one.chance)


def test_the_best_of_equals_is_rarely_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways are alike, so the first is as good as any: it stays in nine times of ten at least."""
    monkeypatch.setattr(_estimate, "DRAWS", 200)
    monkeypatch.setattr(_estimate, "WARM_UP", 50)
    generator = np.random.default_rng(0)
    kept = [
        "0" in run_race({str(way): generator.normal(size=3).tolist() for way in range(5)}).open
        for _ in range(30)
    ]
    assert np.mean(kept) >= 0.85


@pytest.mark.parametrize("scores", [{}, {"a": []}, {"a": [float("nan")], "b": [1.0]}])
def test_scores_that_are_none_are_refused(scores: dict[str, list[float]]) -> None:
    with pytest.raises(InputError):
        run_race(scores)
