"""Two halves of the rows of logs: what one half teaches is judged by the other, both ways round.

The halves are the even and the odd stages of every log, so both are of the whole of every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._curve_rows import CurveRows
from taskmix.counterfactual._curves import LearningCurves, fit_curves
from taskmix.counterfactual._log import Log
from taskmix.counterfactual._statistics import LogStatistics

HalfCurves = tuple[LearningCurves, LearningCurves]
HalfSums = tuple[LogStatistics, LogStatistics]


def half_sums(logs: Sequence[Log]) -> HalfSums:
    """The sums of the rewards of each half, [task]."""
    even = reduce(add, (log.stages[0::2].pooled() for log in logs))
    odd = reduce(add, (log.stages[1::2].pooled() for log in logs))
    return even, odd


def half_curves(logs: Sequence[Log], whole: LearningCurves) -> HalfCurves:
    """The curves of each half; twice the `whole` where a half has no row of some task."""
    parts = [log.performance for log in logs if log.performance is not None]
    for fold in (0, 1):
        if np.any(sum(part.visits[fold::2].sum(axis=0) for part in parts) == 0):
            return whole, whole
    even, odd = (fit_curves(CurveRows.of(logs, fold=fold)) for fold in (0, 1))
    return even, odd


def farthest(
    policies: tuple[NDArray[np.float64], NDArray[np.float64]],  # [place, task], taught by each half
    curves: HalfCurves,
    *,
    budget: float,
    errors: float,
) -> int:
    """The last place whose policies end no lower than those of the best, up to so many `errors`.

    The policies of one half are read off the curves of the other. An error is the standard error of
    the difference from the best place.
    """
    taught = [budget * policies[0], budget * policies[1]]
    judges = curves[::-1]
    ends = (
        sum(judge.at(visits).mean(axis=-1) for judge, visits in zip(judges, taught, strict=True))
        / 2
    )
    best = int(np.argmax(ends))
    lack = ends[best] - ends
    if errors > 0:
        squares = [
            judge.difference_error(visits, visits[best]) ** 2
            for judge, visits in zip(judges, taught, strict=True)
        ]
        lack = lack - errors * np.sqrt(sum(squares)) / 2
    return int(np.flatnonzero(lack <= 0).max())
