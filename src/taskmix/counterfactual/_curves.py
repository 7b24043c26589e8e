r"""Learning curves out of logs: how well a task does after so many visits, and after some more.

The reward of Eq. 16 (Glover and Hokamp, 2019) stands in for what is wanted, the mean performance at the
end of training (their Eq. 15), and errs where it is followed too far: that is what their entropy term
is for. The log knows more than its rewards. Each row has the loss of a task after a known number of
visits, so the log traces, for every task, the performance exp(−loss) against visits; a policy with
share $p_k$ makes $p_k T$ visits, and its performance at the end is read off the curve.

**Pooling.** Rows of all logs are pooled by visits: the tenth visit of a task in one run and in another
are the same place of the curve, whatever the number of runs. Each curve has up to `KNOTS` knots, the
means of the rows there, and between them is the non-decreasing curve nearest to these means.

**The tail.** A non-decreasing curve follows the noise upwards at its end, so the end is a line instead:
performance against the logarithm of visits, fitted over the widest of `WINDOWS` that it fits (χ², 95 %).
The curve goes on along it, and not above 1: more practice helps less and less. Slopes of tasks that the
rows cannot tell apart are drawn to their common mean (DerSimonian and Laird, "Meta-analysis in Clinical
Trials", 1986), and none is below zero.

**Errors** are by a parametric bootstrap: means are drawn about the curve with the noise of their rows,
and everything is fitted again. Noise is the larger of what rows have within a stage and what runs have
between them. What other tasks contributed to a task's progress (transfer) stays in its curve as it was
in the log, and is in no error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._log import Log
from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import InputError
from taskmix.numerics import isotonic

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


KNOTS = 16  # of a curve; more have too few rows each, fewer cannot bend
WINDOWS = (0.25, 0.5, 0.75)  # where the line of the tail may begin, as shares of a task's visits
FEWEST_KNOTS = 3  # of a window: a line through two always fits
REPLICATES = 64  # of the bootstrap: an error is then known to a tenth
FEWEST_REPLICATES = 16  # where there are many tasks, over which the mean is taken
CURVES_AT_ONCE = 4096  # that are fitted; bounds the memory
NUMBERS_AT_ONCE = 1 << 19  # that are read off curves; more leave the processor's cache
SMALLEST_NOISE = 1e-6  # of a row, where a simulation has none


@dataclass(frozen=True, slots=True)
class Shape:
    """Performance against visits, for each task and each of any leading axes."""

    visits: NDArray[np.float64]  # [task, knot], ascending
    performance: NDArray[np.float64]  # [..., task, knot], non-decreasing
    slope: NDArray[np.float64]  # [..., task], of the tail, for e times the visits

    def at(self, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The performance after so many `visits` [division..., task], as [..., division..., task]."""
        known = self.visits
        place = np.zeros(visits.shape, dtype=np.int64)  # of the knot below, one below the last
        for knot in range(1, known.shape[-1] - 1):
            place += visits >= known[:, knot]
        tasks, above = np.arange(len(known)), np.minimum(place + 1, known.shape[-1] - 1)
        width = known[tasks, above] - known[tasks, place]
        share = np.clip(
            (visits - known[tasks, place]) / np.where(width > 0, width, np.inf), 0.0, 1.0
        )
        low, high = self.performance[..., tasks, place], self.performance[..., tasks, above]
        beyond = np.log(np.maximum(visits, known[:, -1]) / known[:, -1])
        slope = np.expand_dims(self.slope, tuple(range(-visits.ndim, -1)))
        return np.asarray(np.minimum(low + (high - low) * share + slope * beyond, 1.0))


@dataclass(frozen=True, slots=True)
class LearningCurves:
    """The curves of all tasks, and others that the noise could as well have made."""

    shape: Shape  # of every task
    replicates: Shape  # [replicate, task]
    noise: NDArray[np.float64]  # [task], standard deviation of one row about the curve

    def at(self, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The performance [..., task] after so many `visits` [..., task]."""
        return self.shape.at(visits)

    def difference_error(
        self,
        visits: NDArray[np.float64],  # [..., task]
        others: NDArray[np.float64],  # [..., task]
    ) -> NDArray[np.float64]:
        """The standard error [...] of the mean difference between two divisions of the budget."""
        either = np.broadcast_shapes(visits.shape, others.shape)
        flat = np.broadcast_to(visits, either).reshape(-1, either[-1])
        found = self._replicated(flat) - self._replicated(others.reshape(-1, either[-1]))
        return np.asarray(found.std(axis=0, ddof=1).reshape(either[:-1]))

    def _replicated(self, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean performance [replicate, division] of each replicate."""
        again = self.replicates
        found = np.empty((len(again.slope), len(visits)))
        count = max(NUMBERS_AT_ONCE // visits.size, 1)
        for begin in range(0, len(found), count):
            part = slice(begin, begin + count)
            some = Shape(again.visits, again.performance[part], again.slope[part])
            found[part] = some.at(visits).mean(axis=-1)
        return found


def learning_curves(logs: Sequence[Log]) -> LearningCurves:
    """The curves of all tasks from all `logs` together.

    >>> losses = -np.log(np.linspace(0.1, 0.9, 64))  # of one task, whose performance rises in a line
    >>> log = log_from_arrays(np.zeros(64, int), np.ones(64), np.ones(64), losses, names=["a"])
    >>> curves = learning_curves([log])
    >>> curves.at(np.array([[16.0], [48.0]])).round(2).tolist()
    [[0.3], [0.7]]
    """
    return fit_curves(CurveRows.of(logs))


def fit_curves(rows: CurveRows) -> LearningCurves:
    """The curves through the means of `rows`."""
    pooled = rows.pooled(KNOTS)
    plain = isotonic(pooled.means, pooled.counts)
    noise = np.maximum(
        rows.noise(Shape(pooled.visits, plain, np.zeros(len(plain))).at), SMALLEST_NOISE
    )
    errors = noise[:, None] / np.sqrt(pooled.counts)  # [task, knot]
    shape = _fit(pooled.visits, pooled.means, errors)
    # The same numbers for the same log: a policy that is learned twice should be the same twice.
    count = min(REPLICATES, max(FEWEST_REPLICATES, NUMBERS_AT_ONCE // errors.size))
    draws = np.random.default_rng(0).normal(size=(count, *errors.shape))
    # Half-way to the curve without its line: about the line alone every window would fit, about the
    # other curve, which has followed the noise, too few would.
    centre = (shape.performance + plain) / 2
    again = _fit(pooled.visits, centre + errors * draws, errors)
    return LearningCurves(shape, again, noise)


def _fit(
    visits: NDArray[np.float64],  # [task, knot]
    means: NDArray[np.float64],  # [..., task, knot]
    errors: NDArray[np.float64],  # [task, knot], standard errors of the means
) -> Shape:
    """Non-decreasing knots with a line at their end."""
    weights = np.broadcast_to(errors**-2, means.shape)
    flat, heavy = means.reshape(-1, means.shape[-1]), weights.reshape(-1, means.shape[-1])
    values = np.empty_like(flat)
    for begin in range(0, len(flat), CURVES_AT_ONCE):
        part = slice(begin, begin + CURVES_AT_ONCE)
        values[part] = isotonic(flat[part], heavy[part])
    rising = values.reshape(means.shape)
    tail = _tail(visits, means, weights)
    slope = np.maximum(_drawn_together(tail.slope, tail.slope_error), 0.0)
    line = tail.level[..., None] + slope[..., None] * (np.log(visits) - tail.place[..., None])
    line = np.minimum(line, 1.0)
    # Before the window no knot lies above the line's beginning.
    first = np.where(tail.inside, line, np.inf).min(axis=-1, keepdims=True)
    return Shape(visits, np.where(tail.inside, line, np.minimum(rising, first)), slope)


@dataclass(frozen=True, slots=True)
class _Tail:
    """Lines through the last knots."""

    slope: NDArray[np.float64]  # [..., task]
    slope_error: NDArray[np.float64]  # [..., task]
    level: NDArray[np.float64]  # [..., task], at `place`
    place: NDArray[np.float64]  # [..., task], the mean logarithm of the visits in the window
    inside: NDArray[np.bool_]  # [..., task, knot], the window


def _tail(
    visits: NDArray[np.float64],  # [task, knot]
    means: NDArray[np.float64],  # [..., task, knot]
    weights: NDArray[np.float64],  # [..., task, knot]
) -> _Tail:
    """The line over the widest window that it fits; over the narrowest where it fits none."""
    from scipy.special import chdtri

    places, real = np.log(visits), weights > 1e-6 * weights.max(axis=-1, keepdims=True)
    chosen: _Tail | None = None
    fits: NDArray[np.bool_] | None = None
    for window in WINDOWS:
        inside = np.broadcast_to(visits >= window * visits[:, -1:], means.shape)
        used = np.where(inside, weights, 0.0)
        total = used.sum(axis=-1)
        place = (used * places).sum(axis=-1) / total
        level = (used * means).sum(axis=-1) / total
        apart, above = places - place[..., None], means - level[..., None]
        spread = (used * apart**2).sum(axis=-1)
        count = (inside & real).sum(axis=-1)
        usable = (count >= FEWEST_KNOTS) & (spread > 0)
        slope = np.where(
            usable, (used * apart * above).sum(axis=-1) / np.where(usable, spread, 1.0), 0.0
        )
        error = np.where(usable, 1 / np.sqrt(np.where(usable, spread, 1.0)), 0.0)
        missed = (used * (above - slope[..., None] * apart) ** 2).sum(axis=-1)
        found = _Tail(slope, error, level, place, inside)
        good = missed <= chdtri(np.maximum(count - 2, 1), 0.05)
        if chosen is None or fits is None:
            chosen, fits = found, good
        else:
            chosen = _replaced(chosen, found, ~fits & usable)
            fits = fits | good
    assert chosen is not None
    return chosen


def _replaced(old: _Tail, new: _Tail, where: NDArray[np.bool_]) -> _Tail:
    return _Tail(
        np.where(where, new.slope, old.slope),
        np.where(where, new.slope_error, old.slope_error),
        np.where(where, new.level, old.level),
        np.where(where, new.place, old.place),
        np.where(where[..., None], new.inside, old.inside),
    )


def _drawn_together(
    values: NDArray[np.float64],  # [..., task]
    errors: NDArray[np.float64],  # [..., task]
) -> NDArray[np.float64]:
    """Each value drawn to the mean of all, the more the less they differ beyond their errors."""
    known = errors > 0
    precision = np.where(known, 1 / np.where(known, errors, 1.0) ** 2, 0.0)
    total = np.maximum(precision.sum(axis=-1, keepdims=True), 1e-300)
    mean = (precision * values).sum(axis=-1, keepdims=True) / total
    excess = (precision * (values - mean) ** 2).sum(axis=-1, keepdims=True) - (
        known.sum(-1, keepdims=True) - 1
    )
    scale = total - (precision**2).sum(axis=-1, keepdims=True) / total
    variance = np.maximum(excess, 0.0) / np.maximum(scale, 1e-300)  # between the tasks
    weight = np.where(known, 1 / (variance + np.where(known, errors, 1.0) ** 2), 0.0)
    centre = (weight * values).sum(axis=-1, keepdims=True) / np.maximum(
        weight.sum(axis=-1, keepdims=True), 1e-300
    )
    return np.asarray(np.where(known, centre + (values - centre) * variance * weight, values))
