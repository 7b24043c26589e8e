r"""A reward that says where a visit still pays: the slope of a task's learning curve.

Eq. 16 (Glover and Hokamp, 2019) pays for tasks whose loss is high, learned or not. What a policy p gains
at the end of training over the logged shares is, to first order, $\sum_k (p_k - \pi_k) T f_k'(v_k)$ with
$f_k$ the learning curve of task k and $v_k = \pi_k T$ its visits. So here every row of a task has the
reward $f_k'(v_k)\,T/N$: what a uniform share of visits more would add to its performance, at the slope
its curve ends with. The slope is taken between `REACH` times fewer and more visits.

The slopes of the even stages come from the even stages, those of the odd from the odd: half of the rows
can still judge what the other half taught. The sums of squares are such that the standard error of a
task's mean reward is that of its slope.

What one half of the rows teaches is judged by the other, both ways round. The halves are the even and
the odd stages of every log, so both are of the whole of every run.

Shares of a budget may be sought that take the curves the farthest. The mean performance at the end,
$\frac1N\sum_k f_k(p_k T)$ with $f_k$ the curve of task k, is maximised over shares of at least a quarter
of a uniform one, `LEAST`, and at most eight times it, `MOST`: beyond that a curve from a log of equal
shares is nothing but its tail. At a price for a visit every task takes the share that is worth the most
to it, whatever the others do; the price is the one at which the shares sum to one. Where a curve bends
upwards the two shares beside the gap are mixed, so the answer is the maximum for the concave curves
nearest above.

Curves err where they are followed far, and know nothing of transfer between tasks. This division alone
is not safe; `improve_policy` moves from uniform shares towards it as far as held-out rows agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._curves import CurveRows, LearningCurves, Shape, fit_curves
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


LEAST, MOST = 0.25, 8.0  # of a uniform share
GRID_STEPS = 80  # between them; a step is 4 % of a share
BISECTIONS = 60  # of the price, to the rounding of a float


def curve_shares(
    curve: Callable[
        [NDArray[np.float64]], NDArray[np.float64]
    ],  # visits [..., task] to performance
    *,
    budget: float,
    task_count: int,
) -> NDArray[np.float64]:
    """The shares [task] of the largest mean performance after `budget` steps.

    What no task would gain from is divided equally, so flat curves have uniform shares.
    """
    grid = np.unique([*np.geomspace(LEAST, MOST, GRID_STEPS + 1), 1.0]) / task_count
    worth = curve(np.repeat(budget * grid[:, None], task_count, axis=1))  # [place, task]

    def taken(price: float) -> NDArray[np.float64]:
        # Of places worth the same the first: nothing is taken for nothing.
        return np.asarray(grid[(worth - price * grid[:, None]).argmax(axis=0)])

    most = taken(0.0)
    if most.sum() <= 1:
        return np.asarray(most + (1 - most.sum()) / task_count)
    low, high = 0.0, float(np.ptp(worth, axis=0).max() / np.diff(grid).min())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle).sum() > 1 else (low, middle)
    more, fewer = taken(low), taken(high)
    gap = more.sum() - fewer.sum()
    part = (1 - fewer.sum()) / gap if gap > 0 else 0.0
    return np.asarray(part * more + (1 - part) * fewer)
