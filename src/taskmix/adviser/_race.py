"""Who may be the best way of training, and who is out.

A race is read off the draws of an estimate (`_estimate.py`): a way may be the best where it belongs to
the few that hold the best one with the chance asked for, or where it beats the leader in one draw of
twenty; the others are out, and get no more seeds (Maron and Moore, "Hoeffding Races", NIPS 1993, with
posterior chances in place of Hoeffding's bound).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from taskmix.adviser._estimate import Estimate, Measured, estimate_ways
from taskmix.errors import InputError
from taskmix.numerics import Interval

Scores = Mapping[str, Sequence[float]]  # of each way, by seed from the first on


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a way stands."""

    name: str
    seeds: int  # 0: only a cheaper model has run it
    mean: float  # over its own seeds, as measured
    behind: Interval  # the leader minus this way, at the length asked for, on rows not seen
    is_open: bool  # whether it may still be the best
    chance: float  # that it is


@dataclass(frozen=True, kw_only=True)
class Race:
    """All ways, the leader first; `noise` is the deviation of one run's score."""

    standings: tuple[Standing, ...]
    noise: float
    level: float = 0.9
    agreement: Mapping[str, Interval] = field(default_factory=dict)  # of each lower rung

    @property
    def leader(self) -> Standing:
        return self.standings[0]

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.standings if each.is_open)

    @property
    def is_settled(self) -> bool:
        return len(self.open) == 1

    def standing(self, name: str) -> Standing:
        return next(each for each in self.standings if each.name == name)


def run_race(scores: Scores, level: float = 0.9) -> Race:
    """Who leads and who is out by scores alone."""
    _check(scores)
    group = Measured(
        name="scores", values={way: [[s] for s in some] for way, some in scores.items()}
    )
    return race_of(estimate_ways([group]), scores, level)


def race_of(estimate: Estimate, scores: Scores, level: float = 0.9) -> Race:
    """The race of an estimate; a way without a score of its own cannot lead."""
    _check(scores)
    means = dict(zip(estimate.ways, estimate.means.tolist(), strict=True))
    leader = max(scores, key=lambda way: means[way])
    order = sorted(estimate.ways, key=lambda way: (way != leader, -means[way]))
    best, total = set[str](), 0.0
    for way in sorted(estimate.ways, key=lambda way: -estimate.chances[way]):
        if total >= level:
            break
        best.add(way)
        total += estimate.chances[way]
    standings = []
    for way in order:
        behind = estimate.of(leader) - estimate.of(way)
        beats = float(np.mean(behind <= 0))
        own = scores.get(way, ())
        standings.append(
            Standing(
                name=way,
                seeds=len(own),
                mean=float(np.mean(own)) if len(own) else float("nan"),
                behind=_interval(behind, len(own), level),
                is_open=way == leader or way in best or beats >= (1 - level) / 2,
                chance=estimate.chances[way],
            )
        )
    agreement = {name: _interval(draws, 0, level) for name, draws in estimate.agreement.items()}
    return Race(standings=tuple(standings), noise=estimate.noise, level=level, agreement=agreement)


def _interval(draws: NDArray[np.float64], count: int, level: float) -> Interval:
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(draws.mean()), float(low), float(high), count, level)


def _check(scores: Scores) -> None:
    if not scores or not all(len(each) for each in scores.values()):
        raise InputError("Every way in a race should have a score. Found one without.")
    if not all(np.isfinite(each).all() for each in scores.values()):
        raise InputError("Scores of a race should be numbers. Found NaN. Leave that way out.")
