"""One pass over a log: the sums of `LogStatistics`.

With few tasks a chunk of rows is sorted by task, in linear time since tasks are small whole numbers,
and every sum is one over neighbours. Where a task was always drawn with the same probability within
the chunk, as under every policy but a learning one, its weight is taken out of the sums. With many
tasks sorting gains nothing, and rows are counted into their tasks one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import InputError, OptionError, ShapeError

# Rows worked on at a time, so that what is in between stays in the processor's cache. No multiple of
# a power of two: the runs of equally frequent tasks would all begin in the same place of the cache.
ROWS_AT_ONCE = 50_021
FEW_TASKS = 256  # their numbers fit into a byte, which sorts in one pass
PROBABILITY_ROUNDING = 1e-9  # by which one may exceed 1, as sums of floats do


def sum_log(
    tasks: ArrayLike,  # [row], whole numbers from 0
    rewards: ArrayLike,  # [row]; NaN where a choice has no reward, which is left out
    probabilities: ArrayLike,  # [row], that the task was drawn with
    *,
    task_count: int,
    clip: float | None = None,
    first_row: int = 0,
) -> LogStatistics:
    """One pass over a log.

    With `clip`, weights 1/π above it are cut down to it: less variance for a bias towards zero of
    importance sampling. The cut is made on 1/π and not on p/π, so that the sums serve every policy.
    `first_row` is what the first row is called in an error.

    >>> log = sum_log([0, 1, 1], [1.0, 0.5, np.nan], [0.5, 0.25, 0.5], task_count=2)
    >>> log.visits.tolist(), log.weight.tolist()  # a row without a reward is left out
    ([1, 1], [2.0, 4.0])
    """
    chosen, drawn = np.asarray(tasks), np.asarray(probabilities, dtype=np.float64)
    gained = np.asarray(rewards, dtype=np.float64)
    if not (chosen.shape == drawn.shape == gained.shape) or chosen.ndim != 1:
        raise ShapeError(
            "`tasks`, `rewards` and `probabilities` should have one value per row. Found shapes "
            f"{chosen.shape}, {gained.shape} and {drawn.shape}."
        )
    if task_count < 1:
        raise OptionError(f"`task_count` should be at least 1. Found {task_count}.")
    if clip is not None and not clip >= 1:
        raise OptionError(f"`clip` should be a weight of at least 1. Found {clip}.")
    sums = _Sums(task_count, np.inf if clip is None else clip)
    add = sums.add_sorted if task_count <= FEW_TASKS else sums.add_counted
    for begin in range(0, len(chosen), ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        _check_tasks(chosen[part], task_count, first_row + begin)
        add(chosen[part], gained[part], drawn[part], first_row + begin)
    return sums.statistics()


class _Sums:
    """The running sums of one pass."""

    def __init__(self, task_count: int, clip: float) -> None:
        self._clip = clip
        self._count = task_count
        self._visits = np.zeros(task_count, dtype=np.int64)
        self._clipped = np.zeros(task_count, dtype=np.int64)
        self._sums = np.zeros((5, task_count))  # A to E of `LogStatistics`
        self._largest = np.zeros(task_count)
        self._lowest = np.full(task_count, np.inf)
        self._highest = np.full(task_count, -np.inf)

    def add_sorted(
        self,
        tasks: NDArray[Any],
        rewards: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        first_row: int,
    ) -> None:
        """Adds rows in the order of their tasks."""
        if not len(tasks):
            return
        numbers = tasks.astype(np.uint8)
        order = numbers.argsort(kind="stable")
        begins = numbers.searchsorted(np.arange(self._count).astype(np.uint8), sorter=order)
        counts = np.append(begins[1:], len(order)) - begins
        have: Any = slice(None)
        if not counts.all():
            have = np.flatnonzero(counts)
            begins, counts = begins[have], counts[have]
        drawn = probabilities.take(order, mode="clip")
        gained = rewards.take(order, mode="clip")
        least, most = np.minimum.reduceat(drawn, begins), np.maximum.reduceat(drawn, begins)
        # A missing value comes through both reductions, and compares as false.
        if not (least.min() > 0 and most.max() <= 1 + PROBABILITY_ROUNDING):
            _check_probabilities(probabilities, first_row)
        fixed = bool((least == most).all())
        if not fixed:
            weights, cut = self._clip_weights(np.divide(1.0, drawn, out=drawn), begins)
            gained *= weights
        lowest = np.minimum.reduceat(gained, begins)
        if np.isnan(lowest).any():
            known = ~np.isnan(rewards)
            self.add_sorted(tasks[known], rewards[known], probabilities[known], first_row)
            return
        highest = np.maximum.reduceat(gained, begins)
        terms = np.empty((5, len(begins)))
        np.add.reduceat(gained, begins, out=terms[0])
        if fixed:
            np.add.reduceat(np.multiply(gained, gained, out=gained), begins, out=terms[2])
            largest, cut = self._clip_weights(1.0 / most, np.arange(len(begins)))
            lowest, highest, cut = lowest * largest, highest * largest, cut * counts
            terms[0] *= largest
            terms[1] = counts * largest
            terms[2] *= largest * largest
            terms[3:] = terms[:2] * largest
        else:
            largest = np.minimum(1.0 / least, self._clip)
            np.add.reduceat(weights, begins, out=terms[1])
            products = gained * weights
            np.add.reduceat(products, begins, out=terms[3])
            np.add.reduceat(np.multiply(gained, gained, out=products), begins, out=terms[2])
            np.add.reduceat(np.multiply(weights, weights, out=products), begins, out=terms[4])
        self._visits[have] += counts
        self._clipped[have] += cut
        self._sums[:, have] += terms
        self._largest[have] = np.maximum(self._largest[have], largest)
        self._lowest[have] = np.minimum(self._lowest[have], lowest)
        self._highest[have] = np.maximum(self._highest[have], highest)

    def _clip_weights(
        self, weights: NDArray[np.float64], begins: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The weights, cut off in place, and how many of each task were."""
        if self._clip == np.inf:
            return weights, np.zeros(len(begins), dtype=np.int64)
        cut = np.add.reduceat((weights > self._clip).astype(np.int64), begins)
        return np.minimum(weights, self._clip, out=weights), cut

    def add_counted(
        self,
        tasks: NDArray[Any],
        rewards: NDArray[np.float64],
        probabilities: NDArray[np.float64],
        first_row: int,
    ) -> None:
        """Adds rows in the order they came."""
        _check_probabilities(probabilities, first_row)
        known = ~np.isnan(rewards)
        if not known.all():
            tasks, rewards, probabilities = tasks[known], rewards[known], probabilities[known]
        places = tasks.astype(np.intp, copy=False)
        weights = 1.0 / probabilities
        if self._clip < np.inf:
            cut = weights > self._clip
            weights = np.minimum(weights, self._clip)
            self._clipped += np.bincount(places[cut], minlength=self._count)
        gains = rewards * weights
        self._visits += np.bincount(places, minlength=self._count)
        for row, terms in enumerate(
            (gains, weights, gains * gains, gains * weights, weights * weights)
        ):
            self._sums[row] += np.bincount(places, terms, self._count)
        np.maximum.at(self._largest, places, weights)
        np.minimum.at(self._lowest, places, gains)
        np.maximum.at(self._highest, places, gains)

    def statistics(self) -> LogStatistics:
        gains, weights, gains_squared, gains_weights, weights_squared = self._sums
        return LogStatistics(
            visits=self._visits,
            reward=gains,
            weight=weights,
            reward_squared=gains_squared,
            reward_weight=gains_weights,
            weight_squared=weights_squared,
            largest_weight=self._largest,
            lowest=self._lowest,
            highest=self._highest,
            clipped=self._clipped,
        )


def _check_probabilities(probabilities: NDArray[np.float64], first_row: int) -> None:
    """Refuses probabilities that nothing can have been drawn with, and says in which row."""
    right = (probabilities > 0) & (probabilities <= 1 + PROBABILITY_ROUNDING)
    if not right.all():
        row = int((~right).argmax())
        found = probabilities[row]
        raise InputError(
            "The probability of a choice should lie above 0 and not above 1. Found "
            f"{'none' if np.isnan(found) else found} in row {first_row + row} of the log. Log the "
            "probability the task was really drawn with, at the moment of the choice."
        )


def _check_tasks(tasks: NDArray[Any], task_count: int, first_row: int) -> None:
    if tasks.dtype == np.int64:
        tasks = tasks.view(np.uint64)  # where a number below zero is a large one: one look for both
    if len(tasks) and not (
        tasks.max() < task_count and (tasks.dtype.kind == "u" or tasks.min() >= 0)
    ):
        row = int((~((tasks >= 0) & (tasks < task_count))).argmax())
        found = tasks.view(np.int64)[row] if tasks.dtype == np.uint64 else tasks[row]
        raise InputError(
            f"A task should be a number from 0 to {task_count - 1}. Found {found} in row "
            f"{first_row + row} of the log."
        )
