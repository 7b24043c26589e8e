"""A race of candidates over seeds: who is significantly behind drops out, who may win runs on.

Every candidate has one score a seed, and seeds are common to all, so what a seed does to all of them
cancels. The noise that is left is estimated from all candidates together (scores minus the mean of
the candidate and of the seed): with two seeds each, a candidate alone says next to nothing of its
own spread. A candidate is out where the interval of its difference to the leader lies below zero; the
level is divided by the number of candidates, since the leader is the best of many.

    Maron and Moore, "Hoeffding Races", NIPS 1993; the pooled variance is that of a two-way analysis
    (blocks are seeds).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.numerics import Interval, student_quantile

Scores = Mapping[str, Sequence[float]]  # of each candidate, by seed from the first on


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a candidate stands."""

    name: str
    seeds: int
    mean: float  # over its own seeds
    behind: Interval  # the leader's score minus its own, over the seeds both have
    is_open: bool  # whether it may still be the best


@dataclass(frozen=True, kw_only=True)
class Race:
    """All candidates, the leader first; `noise` is the deviation of a score about its place."""

    standings: tuple[Standing, ...]
    noise: float
    degrees: int

    @property
    def leader(self) -> Standing:
        return self.standings[0]

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.standings if each.is_open)

    def standing(self, name: str) -> Standing:
        return next(each for each in self.standings if each.name == name)


def run_race(scores: Scores, level: float = 0.9) -> Race:
    """Who leads and who is out.

    The leader is the best of those with the most seeds: a candidate that dropped out early keeps the
    luck of its few seeds.
    """
    table = _table(scores)
    names = list(scores)
    noise, degrees = pooled_noise(table)
    counts = np.sum(~np.isnan(table), axis=1)
    means = np.nanmean(table, axis=1)
    first = max(range(len(names)), key=lambda c: (counts[c], means[c], -c))
    each_level = 1 - (1 - level) / max(len(names) - 1, 1)
    standings = []
    for place, name in enumerate(names):
        behind = _difference(table[first], table[place], noise, degrees, each_level)
        standings.append(
            Standing(
                name=name,
                seeds=int(counts[place]),
                mean=float(means[place]),
                behind=behind,
                is_open=place == first or not behind.low > 0,
            )
        )
    order = sorted(range(len(names)), key=lambda c: (c != first, standings[c].behind.mean, c))
    return Race(standings=tuple(standings[c] for c in order), noise=noise, degrees=degrees)


def _table(scores: Scores) -> NDArray[np.float64]:
    """[candidate, seed]; NaN where a candidate has no such seed."""
    if not scores or not all(len(each) for each in scores.values()):
        raise InputError("Every candidate of a race should have a score. Found one without.")
    table = np.full((len(scores), max(len(each) for each in scores.values())), np.nan)
    for place, each in enumerate(scores.values()):
        table[place, : len(each)] = each
    if np.isnan(table).sum() > sum(table.shape[1] - len(each) for each in scores.values()):
        raise InputError("Scores of a race should be numbers. Found NaN. Leave the candidate out.")
    return table


def pooled_noise(table: NDArray[np.float64]) -> tuple[float, int]:
    """Deviation of a score about candidate plus seed, and its degrees of freedom; NaN where none.

    Seeds come in order, so the design is connected, and the additive model has its usual rank.
    """
    rows, columns = np.nonzero(~np.isnan(table))
    candidates, seeds = table.shape
    degrees = len(rows) - (candidates + seeds - 1)
    if degrees < 1:
        return float("nan"), 0
    design = np.zeros((len(rows), candidates + seeds))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), candidates + columns] = 1
    values = table[rows, columns]
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.sqrt(((values - fitted) ** 2).sum() / degrees)), degrees


def _difference(
    ours: NDArray[np.float64],
    theirs: NDArray[np.float64],
    noise: float,
    degrees: int,
    level: float,
) -> Interval:
    both = ~np.isnan(ours) & ~np.isnan(theirs)
    count = int(both.sum())
    mean = float((ours - theirs)[both].mean())
    if degrees == 0:
        return Interval(mean, float("nan"), float("nan"), count, level)
    half = student_quantile(level, degrees) * noise * np.sqrt(2 / count)
    return Interval(mean, mean - half, mean + half, count, level)
