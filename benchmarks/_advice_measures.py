"""What is made of later scores: regret, coverage, and whether a settled race stays settled.

Scores are means over tasks where higher is better, one for each fresh seed; differences are paired by
seed. The intervals are over seeds: the rows of test are the same for all, so they say how sure it is
that one way beats another *on these rows*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from taskmix.numerics import Interval, paired_interval

LEVEL = 0.9
Verdict = Literal["significantly worse", "significantly better", "neither"]
SMALLEST_SHARE = (
    1e-3  # of a task in shares that are drawn: a plan has no task that is never trained on
)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Of one way of training, a mean for each fresh seed."""

    dev: tuple[float, ...]
    test: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Regret:
    """The plan minus a baseline on test, and which baseline it was."""

    baseline: str
    picked: Literal["dev", "test"]  # how the best of the baselines was picked
    difference: Interval
    verdict: Verdict


def random_shares(tasks: int, count: int, *, seed: int = 0) -> list[tuple[float, ...]]:
    """Shares drawn evenly from all there are (Dirichlet with ones)."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(tasks), size=count)
    drawn = np.maximum(drawn, SMALLEST_SHARE)
    return [tuple(float(share) for share in row / row.sum()) for row in drawn]


def regret_by_dev(plan: Scores, baselines: Mapping[str, Scores]) -> Regret:
    """Against the baseline that a user would have taken: the best on dev, over the same seeds.

    Test rows had no part in the picking, so its interval needs no correction.
    """
    best = max(baselines, key=lambda name: float(np.mean(baselines[name].dev)))
    difference = paired_interval(plan.test, baselines[best].test, LEVEL)
    return Regret(
        baseline=best, picked="dev", difference=difference, verdict=verdict_of(difference)
    )


def regret_by_test(plan: Scores, baselines: Mapping[str, Scores]) -> Regret:
    """Against the baseline that turned out best on test, which nobody could know.

    "Worse" is said where an interval below zero remains after the level is divided by the number of
    baselines (Bonferroni), since the luckiest was picked. "Better" needs an interval above zero against
    every one of them, which needs no correction: all have to agree.
    """
    best = max(baselines, key=lambda name: float(np.mean(baselines[name].test)))
    corrected = 1 - (1 - LEVEL) / len(baselines)
    difference = paired_interval(plan.test, baselines[best].test, corrected)
    plain = [paired_interval(plan.test, each.test, LEVEL) for each in baselines.values()]
    verdict: Verdict = "neither"
    if difference.high < 0:
        verdict = "significantly worse"
    elif all(each.low > 0 for each in plain):
        verdict = "significantly better"
    return Regret(baseline=best, picked="test", difference=difference, verdict=verdict)


def verdict_of(difference: Interval) -> Verdict:
    if difference.high < 0:
        return "significantly worse"
    return "significantly better" if difference.low > 0 else "neither"


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How many later scores lie in the promised intervals, and how wide these are."""

    inside: int
    scores: int
    tasks: int
    width: float  # the mean over tasks

    @property
    def share(self) -> float:
        return self.inside / self.scores if self.scores else math.nan


def coverage(
    expected: Sequence[Mapping[str, Any]],  # task, low and high of each
    later: Sequence[Mapping[str, float]],  # [seed], the test score of each task
) -> Coverage:
    """All later scores of a task are of the same test rows, so they lie in or out together."""
    known = [each for each in expected if any(each["task"] in scores for scores in later)]
    inside = [
        each["low"] <= scores[each["task"]] <= each["high"]
        for each in known
        for scores in later
        if each["task"] in scores
    ]
    widths = [each["high"] - each["low"] for each in known]
    return Coverage(
        inside=sum(inside),
        scores=len(inside),
        tasks=len(known),
        width=float(np.mean(widths)) if widths else math.nan,
    )


@dataclass(frozen=True, kw_only=True)
class Settled:
    """Ways that the race called significantly behind its leader, and those that still are."""

    pairs: int  # that could be trained again
    stay_on_dev: int
    stay_on_test: int
    overturned: tuple[str, ...] = ()  # better than the leader on dev, after all
    unchecked: tuple[str, ...] = ()  # ways whose runs are no plain trainings

    @property
    def share(self) -> float:
        return self.stay_on_dev / self.pairs if self.pairs else math.nan


def settled(leader: Scores, out: Mapping[str, Scores], unchecked: Sequence[str] = ()) -> Settled:
    """A settled pair stays so where the mean difference over fresh seeds has the same sign."""

    def behind(way: Scores, split: Literal["dev", "test"]) -> bool:
        return float(np.mean(getattr(leader, split))) > float(np.mean(getattr(way, split)))

    on_dev = {name: behind(way, "dev") for name, way in out.items()}
    return Settled(
        pairs=len(out),
        stay_on_dev=sum(on_dev.values()),
        stay_on_test=sum(behind(way, "test") for way in out.values()),
        overturned=tuple(name for name, stays in on_dev.items() if not stays),
        unchecked=tuple(unchecked),
    )
