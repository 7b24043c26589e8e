"""Intervals for a mean over seeds and for the difference of two, paired by seed; quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import OptionError, ShapeError


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the interval that covers the true one in a share `level` of repetitions.

    One observation says nothing of its own spread: with `n` = 1, `low` and `high` are NaN, and
    `excludes` is False of every value.

    >>> interval = Interval(mean=0.5, low=0.1, high=0.9, n=3)
    >>> interval.half_width
    0.4
    >>> interval.excludes(0.0), interval.excludes(0.2)
    (True, False)
    """

    mean: float
    low: float
    high: float
    n: int
    level: float = 0.95

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside; never so where the interval is not known."""
        return value < self.low or value > self.high


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Student's interval for the mean of `values` [seed]; a NaN among them makes all of it NaN.

    >>> interval = mean_interval([1.0, 2.0, 3.0])
    >>> interval.mean, round(interval.half_width, 2)
    (2.0, 2.48)
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) == 0:
        raise ShapeError(
            f"`values` should be one row with at least one number. Found shape {sample.shape}."
        )
    n, mean = len(sample), float(sample.mean())
    if n == 1:
        check_level(level)
        return Interval(mean, math.nan, math.nan, n, level)
    half = student_quantile(level, n - 1) * float(sample.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n, level)


def paired_interval(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Interval:
    """Student's interval for the mean of `a` − `b`, whose places are the same seeds.

    What the seeds have in common (the data, the first weights) cancels, which is why the interval
    is narrower than the two separate ones suggest.

    >>> interval = paired_interval([0.8, 0.7, 0.9], [0.7, 0.6, 0.8])
    >>> round(interval.mean, 3), interval.excludes(0.0)
    (0.1, True)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ShapeError(
            f"`a` and `b` should have one number per seed, in the same order. Found shapes "
            f"{first.shape} and {second.shape}. Leave a seed that failed out of both."
        )
    return mean_interval(first - second, level)


def student_quantile(level: float, degrees: float) -> float:
    """How many standard errors a two-sided Student interval reaches to each side.

    >>> round(student_quantile(0.95, 2), 2), round(student_quantile(0.95, 1000), 2)
    (4.3, 1.96)
    """
    from scipy.special import stdtrit

    check_level(level)
    return float(stdtrit(degrees, (1 + level) / 2))


def normal_quantile(level: float) -> float:
    """How many standard errors a two-sided normal interval reaches to each side.

    >>> round(normal_quantile(0.95), 2)
    1.96
    """
    from scipy.special import ndtri

    check_level(level)
    return float(ndtri((1 + level) / 2))


def check_level(level: float) -> None:
    """Refuses what is no share of repetitions.

    >>> check_level(0.95)
    >>> check_level(95)
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `level` should lie between 0 and 1, such as 0.95. Found 95.
    """

    if not 0 < level < 1:
        raise OptionError(f"`level` should lie between 0 and 1, such as 0.95. Found {level}.")


def quantile_of_sorted(values: NDArray[np.float64], share: float) -> float:
    """The `share`-quantile of ascending `values` [value], interpolated as `np.quantile` does.

    Looks at two values only, where `np.quantile` would sort them all again.

    >>> quantile_of_sorted(np.array([0.0, 1.0, 4.0]), 0.75)
    2.5
    """
    if len(values) == 0:
        raise ShapeError("A quantile should be of at least one value. Found none.")
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    low, high = float(values[below]), float(values[above])
    if math.isinf(high - low):  # two numbers that are not: each takes its part
        return (1 - (place - below)) * low + (place - below) * high
    return low + (place - below) * (high - low)
