r"""A reward that says where a visit still pays: the slope of a task's learning curve.

Eq. 16 (Glover and Hokamp, 2019) pays for tasks whose loss is high, learned or not. What a policy p gains
at the end of training over the logged shares is, to first order, $\sum_k (p_k - \pi_k) T f_k'(v_k)$ with
$f_k$ the learning curve of task k and $v_k = \pi_k T$ its visits. So here every row of a task has the
reward $f_k'(v_k)\,T/N$: what a uniform share of visits more would add to its performance, at the slope
its curve ends with. The slope is taken between `REACH` times fewer and more visits.

The slopes of the even stages come from the even stages, those of the odd from the odd: half of the rows
can still judge what the other half taught. The sums of squares are such that the standard error of a
task's mean reward is that of its slope.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._curves import LearningCurves, Shape
from taskmix.counterfactual._folds import HalfCurves
from taskmix.counterfactual._log import Log
from taskmix.counterfactual._statistics import LogStatistics

REACH = 1.25  # a narrower look sees the noise between two knots


def with_slope_rewards(
    logs: Sequence[Log], curves: HalfCurves, *, budget: float
) -> tuple[Log, ...]:
    """The same logs with the slopes of the `curves` for rewards."""
    total = reduce(add, (log.total for log in logs))
    visits = budget * total.visits / total.visits.sum()
    slopes, noise = [], []
    for fold, half in enumerate(curves):
        found, error = slope_rewards(half, visits)
        sums = reduce(add, (log.stages[fold::2].pooled() for log in logs))
        # A mean over rows of noise ρ has the variance ρ² E/B².
        tried = sums.visits > 0
        rows = np.where(tried, sums.weight**2 / np.where(tried, sums.weight_squared, 1.0), 0.0)
        slopes.append(found)
        noise.append(error * np.sqrt(rows))
    return tuple(replace(log, stages=_rewarded(log.stages, slopes, noise)) for log in logs)


def slope_rewards(
    curves: LearningCurves, visits: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The reward of each task after so many `visits` [task], and its standard error."""
    share = visits.mean() / visits

    def of(shape: Shape) -> NDArray[np.float64]:
        rise = shape.at(REACH * visits) - shape.at(visits / REACH)
        return np.asarray(rise / (2 * np.log(REACH)) * share)

    return of(curves.shape), np.asarray(of(curves.replicates).std(axis=0, ddof=1))


def _rewarded(
    stages: LogStatistics, slopes: list[NDArray[np.float64]], noise: list[NDArray[np.float64]]
) -> LogStatistics:
    folds = np.arange(len(stages.visits)) % 2
    reward, spread = np.stack(slopes)[folds], np.stack(noise)[folds]  # [stage, task]
    tried = stages.visits > 0
    return replace(
        stages,
        reward=reward * stages.weight,
        reward_squared=(reward**2 + spread**2) * stages.weight_squared,
        reward_weight=reward * stages.weight_squared,
        lowest=np.where(tried, reward, np.inf),  # 1/π is at least 1
        highest=np.where(tried, reward * stages.largest_weight, -np.inf),
    )
