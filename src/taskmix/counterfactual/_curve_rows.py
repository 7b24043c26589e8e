"""The rows of logs as places of learning curves: performance, and the visits it was seen after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._log import Log
from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import InputError

NO_SAY = 1e-9  # rows that a knot without any counts for


@dataclass(frozen=True, slots=True)
class Knots:
    """Means of rows that are neighbours in visits."""

    visits: NDArray[np.float64]  # [task, knot], ascending
    counts: NDArray[np.float64]  # [task, knot], rows; `NO_SAY` where there are none
    means: NDArray[np.float64]  # [task, knot], the mean of a neighbour where there are none


@dataclass(frozen=True, slots=True)
class CurveRows:
    """Stages of logs; a stage of one log is a mean of rows after known visits of its own run."""

    begins: NDArray[np.float64]  # [stage, task], visits before the stage
    ends: NDArray[np.float64]  # [stage, task]
    counts: NDArray[np.float64]  # [stage, task], effective rows
    means: NDArray[np.float64]  # [stage, task]; 0 where there are no rows
    variances: NDArray[np.float64]  # [stage, task], of rows within the stage
    longest: int  # stages of the longest log

    @classmethod
    def of(cls, logs: Sequence[Log], *, fold: int | None = None) -> CurveRows:
        """Of all stages; with `fold` 0 or 1 of the even or the odd ones of every log."""
        parts: list[LogStatistics] = []
        for log in logs:
            if log.performance is None:
                raise InputError(
                    "Learning curves need the loss of every row. Found a log without a column `loss`. "
                    "Log the losses, or give the weight of the entropy as a number."
                )
            parts.append(log.performance)
        place = slice(None) if fold is None else slice(fold, None, 2)
        ends = [part.visits.cumsum(axis=0).astype(np.float64) for part in parts]
        begins = [end - part.visits for end, part in zip(ends, parts, strict=True)]
        kept = [part[place] for part in parts]
        found = cls(
            begins=np.concatenate([begin[place] for begin in begins]),
            ends=np.concatenate([end[place] for end in ends]),
            counts=np.concatenate([_effective_rows(part) for part in kept]),
            means=np.concatenate([np.nan_to_num(part.means) for part in kept]),
            variances=np.concatenate([_variances(part) for part in kept]),
            longest=max(len(part.visits) for part in kept),
        )
        untried = found.counts.sum(axis=0) == 0
        if np.any(untried):
            task = int(untried.argmax())
            raise InputError(f"Every task should have been tried. Found no row of task {task}.")
        return found

    def pooled(self, knots: int) -> Knots:
        """All rows by their visits, at most so many knots and one for each stage of a log."""
        count, tasks = min(knots, self.longest), self.counts.shape[1]
        middles = (self.begins + self.ends) / 2
        tried = self.counts > 0
        last = np.where(tried, self.ends, 0.0).max(axis=0)
        places = np.minimum((middles / last * count).astype(np.int64), count - 1)
        cells = places + count * np.arange(tasks)

        def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
            # A stage without rows counts as nothing wherever it is put.
            found = np.bincount(
                np.where(tried, cells, 0).ravel(),
                np.where(tried, values, 0.0).ravel(),
                minlength=tasks * count,
            )
            return np.asarray(found, dtype=np.float64).reshape(tasks, count)

        counts = summed(self.counts)
        some = counts > 0
        share = np.where(some, counts, 1.0)
        visits, means = (
            summed(self.counts * middles) / share,
            summed(self.counts * self.means) / share,
        )
        # A knot without rows lies where its neighbour does.
        source = np.maximum.accumulate(np.where(some, np.arange(count), -1), axis=1)
        source = np.where(source < 0, some.argmax(axis=1)[:, None], source)
        visits, means = (np.take_along_axis(a, source, axis=1) for a in (visits, means))
        return Knots(visits, np.where(some, counts, NO_SAY), means)

    def noise(
        self, curve: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """The standard deviation [task] of a row about the `curve`.

        Of rows within a stage, without the rise of the curve over it; or of the stages of several
        runs about the common curve, where that is more: runs differ by more than their rows do.
        """
        rise = curve(self.ends) - curve(self.begins)
        within = np.maximum(self.variances - rise**2 / 12, 0.0)  # the variance along a line
        free = np.maximum(self.counts - 1, 0.0).sum(axis=0)
        rows = (self.counts * within).sum(axis=0) / np.maximum(free, 1.0)
        missed = self.means - curve((self.begins + self.ends) / 2)
        stages = (self.counts > 0).sum(axis=0)
        spare = stages - np.minimum(stages, self.longest)
        between = (self.counts * missed**2).sum(axis=0) / np.maximum(spare, 1)
        return np.asarray(np.sqrt(np.maximum(rows, np.where(spare > 0, between, 0.0))))


def _effective_rows(part: LogStatistics) -> NDArray[np.float64]:
    """Rows of equal weight that would tell as much."""
    tried = part.visits > 0
    return np.where(tried, part.weight**2 / np.where(tried, part.weight_squared, 1.0), 0.0)


def _variances(part: LogStatistics) -> NDArray[np.float64]:
    """The variance of one row within each stage."""
    tried = part.visits > 0
    means = np.where(tried, part.means, 0.0)
    squares = part.reward_squared - 2 * means * part.reward_weight + means**2 * part.weight_squared
    return np.asarray(np.maximum(squares, 0.0) / np.where(tried, part.weight_squared, 1.0))
