r"""Learning curves out of a log: how well a task does after so many visits, and after some more.

The reward of Eq. 16 (Glover and Hokamp, 2019) stands in for what is wanted, the mean performance at the
end of training (their Eq. 15), and errs where it is followed too far: that is what their entropy term
is for. The log knows more than its rewards. Each row has the loss of a task after a known number of
visits, so the log traces, for every task, the performance exp(−loss) against visits; a policy with
share $p_k$ makes $p_k T$ visits, and its performance at the end is read off the curve.

Between the stages of the log a curve is the non-decreasing one nearest to the stages' means, all logs
together. Beyond the last visit it goes on with the logarithm of the visits, at the slope of its second
half, and not above 1: more practice helps less and less. What other tasks contributed to a task's
progress (transfer) stays in its curve as it was in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._log import Log
from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import InputError
from taskmix.numerics import isotonic

TASKS_AT_ONCE = 256  # whose curves are fitted; bounds the memory


@dataclass(frozen=True, slots=True)
class LearningCurves:
    """Performance against visits for each task."""

    visits: NDArray[np.float64]  # [task, knot], ascending
    performance: NDArray[np.float64]  # [task, knot], non-decreasing
    noise: NDArray[np.float64]  # [task], standard deviation of one row about the curve
    rows: NDArray[np.float64]  # [task], rows the curve rests on

    def at(self, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The performance [..., task] after so many `visits` [..., task]."""
        reached = np.empty_like(visits)
        for task in range(visits.shape[-1]):
            reached[..., task] = self._of_task(task, visits[..., task])
        return reached

    def _of_task(self, task: int, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        known, values = self.visits[task], self.performance[task]
        inside = np.interp(visits, known, values)
        last = float(known[-1])
        half = float(np.interp(last / 2, known, values))
        # On a logarithmic scale the second half of the visits is a step of log 2.
        rise = (float(values[-1]) - half) / np.log(2.0)
        beyond = values[-1] + rise * np.log(np.maximum(visits, last) / last)
        return np.asarray(np.minimum(np.where(visits > last, beyond, inside), 1.0))

    def difference_error(
        self,
        visits: NDArray[np.float64],  # [..., task]
        others: NDArray[np.float64],  # [..., task]
    ) -> NDArray[np.float64]:
        r"""The standard error [...] of the mean difference between two divisions of the budget.

        A straight line through n rows of noise σ has a slope known to $\sigma\sqrt{12/n^3}$ for each
        visit; so much is unsure of every visit by which the two differ.
        """
        slope = self.noise * np.sqrt(12.0 / self.rows**3)
        apart = slope * (visits - others)
        return np.asarray(np.sqrt((apart * apart).sum(axis=-1)) / visits.shape[-1])


def learning_curves(logs: Sequence[Log]) -> LearningCurves:
    """The curves of all tasks from all `logs` together.

    >>> losses = -np.log(np.linspace(0.1, 0.9, 64))  # of one task, whose performance rises in a line
    >>> log = log_from_arrays(np.zeros(64, int), np.ones(64), np.ones(64), losses, names=["a"])
    >>> curves = learning_curves([log])
    >>> curves.at(np.array([[16.0], [48.0]])).round(2).tolist()
    [[0.3], [0.7]]
    """
    parts = [log.performance for log in logs]
    if any(part is None for part in parts):
        raise InputError(
            "Learning curves need the loss of every row. Found a log without a column `loss`. Log "
            "the losses, or give the weight of the entropy as a number."
        )
    stages = [part for part in parts if part is not None]
    visits = np.concatenate([_middles(part) for part in stages], axis=0).T  # [task, knot]
    counts = np.concatenate([part.visits for part in stages], axis=0).T.astype(np.float64)
    means = _without_gaps(np.concatenate([_filled_means(part) for part in stages], axis=0)).T
    order = visits.argsort(axis=-1, kind="stable")
    visits, counts, means = (np.take_along_axis(a, order, axis=-1) for a in (visits, counts, means))
    curves = np.empty_like(means)
    for begin in range(0, len(means), TASKS_AT_ONCE):
        block = slice(begin, begin + TASKS_AT_ONCE)
        # A stage without visits has the mean of its neighbour and next to no say.
        curves[block] = isotonic(means[block], np.maximum(counts[block], 1e-9))
    rows = counts.sum(axis=-1)
    variances = np.concatenate([_variances(part) for part in stages], axis=0).T
    variances = np.take_along_axis(variances, order, axis=-1)
    noise = np.sqrt((counts * variances).sum(axis=-1) / rows)
    return LearningCurves(visits, curves, noise, rows)


def _middles(part: LogStatistics) -> NDArray[np.float64]:
    """How often each task had been visited half-way through each stage."""
    return np.asarray(part.visits.cumsum(axis=0) - part.visits / 2)


def _filled_means(part: LogStatistics) -> NDArray[np.float64]:
    """The mean of each stage, that of the last stage with visits where there were none.

    A task that was not tried in this log at all has no mean.
    """
    means = part.means
    stages = np.arange(len(means))[:, None]
    known = ~np.isnan(means)
    latest = np.maximum.accumulate(np.where(known, stages, -1), axis=0)
    latest = np.where(latest < 0, known.argmax(axis=0)[None, :], latest)
    return np.asarray(np.take_along_axis(means, latest, axis=0))


def _without_gaps(
    means: NDArray[np.float64],  # [knot, task], NaN in the logs that did not try a task
) -> NDArray[np.float64]:
    missing = np.isnan(means)
    if np.any(missing.all(axis=0)):
        task = int(missing.all(axis=0).argmax())
        raise InputError(f"Every task should have been tried. Found no row of task {task}.")
    # Such knots lie at no visits. The largest mean there, with next to no say, takes on the value of
    # the first real knot: a curve that may not fall has to bring it down.
    return np.where(missing, np.where(missing, -np.inf, means).max(axis=0), means)


def _variances(part: LogStatistics) -> NDArray[np.float64]:
    """The variance of one row within each stage."""
    tried = part.visits > 0
    means = np.where(tried, part.means, 0.0)
    squares = part.reward_squared - 2 * means * part.reward_weight + means**2 * part.weight_squared
    return np.asarray(np.maximum(squares, 0.0) / np.where(tried, part.weight_squared, 1.0))
