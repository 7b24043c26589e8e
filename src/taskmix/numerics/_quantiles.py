"""Quantiles of values that are already in order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import ShapeError


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
