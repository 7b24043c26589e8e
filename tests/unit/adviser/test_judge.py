"""Who may be the best: intervals that hold what they promise, whatever leads by luck."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from taskmix.adviser import Race, rank_candidates
from taskmix.errors import InputError


@dataclass(frozen=True)
class World:
    """Candidates whose worth is known, judged on dev rows and by seeds that are not the whole truth."""

    candidates: int
    spread: float  # of their worth
    rows: float  # error of each, because dev rows are a sample
    noise: float  # of a run
    seeds: int

    def races(self, count: int, seed: int) -> Iterator[tuple[np.ndarray, Race]]:
        generator = np.random.default_rng(seed)
        for _ in range(count):
            worth = generator.normal(0.8, self.spread, self.candidates)
            seen = worth + generator.normal(0, self.rows, self.candidates)
            scores = (
                seen[:, None]
                + generator.normal(0, 0.02, self.seeds)  # what a seed does to all alike
                + generator.normal(0, self.noise, (self.candidates, self.seeds))
            )
            rows = {str(p): row for p, row in enumerate(self.rows**2 * np.eye(self.candidates))}
            yield (
                worth,
                rank_candidates({str(p): list(own) for p, own in enumerate(scores)}, rows=rows),
            )


WORLDS = [
    World(candidates=6, spread=0.006, rows=0.004, noise=0.005, seeds=3),
    World(candidates=6, spread=0.02, rows=0.004, noise=0.005, seeds=2),
    World(candidates=9, spread=0.003, rows=0.003, noise=0.004, seeds=4),
    World(candidates=12, spread=0.005, rows=0.01, noise=0.003, seeds=3),
]


@pytest.mark.parametrize("world", WORLDS)
def test_ninety_percent_intervals_hold_about_ninety_percent_of_the_true_differences(
    world: World,
) -> None:
    inside, open_best = [], []
    for worth, race in world.races(100, seed=5):
        leader = worth[int(race.leader.name)]
        inside += [
            each.behind.low <= leader - worth[int(each.name)] <= each.behind.high
            for each in race.standings[1:]
        ]
        open_best.append(str(int(worth.argmax())) in race.open)
    assert 0.85 <= np.mean(inside) <= 0.95
    assert np.mean(open_best) >= 0.95


def test_candidates_that_are_called_alike_are_as_near_to_each_other_as_is_said() -> None:
    world = World(candidates=9, spread=0.003, rows=0.003, noise=0.004, seeds=4)
    held = [
        np.ptp([worth[int(name)] for name in race.alike]) <= race.within
        for worth, race in world.races(100, seed=11)
        if race.alike
    ]
    assert len(held) > 50
    assert np.mean(held) >= 0.88


def test_a_lead_by_one_seed_settles_nothing() -> None:
    race = rank_candidates({"a": [0.9], "b": [0.8], "c": [0.7]})
    assert set(race.open) == {"a", "b", "c"}
    assert not race.is_settled


def test_what_is_far_behind_in_every_seed_is_out() -> None:
    scores = {"a": [0.90, 0.70, 0.80], "b": [0.80, 0.60, 0.70], "c": [0.899, 0.701, 0.802]}
    race = rank_candidates(scores)
    assert not race.standing("b").is_open
    assert race.is_settled  # the two others are alike
    assert set(race.alike) >= {"a", "c"}


def test_what_seeds_do_to_all_alike_is_no_difference() -> None:
    own = {"a": [0.91, 0.90], "b": [0.88, 0.87]}
    shifted = {name: [first + 0.05, second] for name, (first, second) in own.items()}
    behind = [rank_candidates(scores).standing("b").behind.mean for scores in (own, shifted)]
    assert behind[0] == pytest.approx(behind[1], abs=0.002)


def test_dev_rows_that_say_little_leave_a_race_open_however_many_seeds_there_are() -> None:
    scores = {"a": [0.900] * 9 + [0.901], "b": [0.890] * 9 + [0.891]}
    rows = {"a": np.array([0.02**2, 0.0]), "b": np.array([0.0, 0.02**2])}
    assert not rank_candidates(scores).standing("b").is_open
    race = rank_candidates(scores, rows=rows)
    assert race.standing("b").is_open
    assert race.row_error == pytest.approx(0.02 * np.sqrt(2))


@pytest.mark.parametrize("scores", [{}, {"a": []}, {"a": [0.5], "b": [float("nan")]}])
def test_a_candidate_without_a_score_is_refused(scores: dict[str, list[float]]) -> None:
    with pytest.raises(InputError):
        rank_candidates(scores)
