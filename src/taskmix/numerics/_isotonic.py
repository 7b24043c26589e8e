"""The non-decreasing curve nearest to noisy values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def isotonic(
    values: NDArray[np.float64],  # [..., knot]
    weights: NDArray[np.float64],  # [..., knot], above zero
) -> NDArray[np.float64]:
    """Weighted least squares among non-decreasing sequences, along the last axis.

    By the minimax formula (Barlow et al., "Statistical Inference under Order Restrictions", 1972,
    Eq. 1.9): the curve at i is the largest over a ≤ i of the smallest over b ≥ i of the weighted mean
    of the values a to b. That is quadratic in the knots, and needs no loop over the leading axes.

    >>> isotonic(np.array([1.0, 3.0, 2.0, 5.0]), np.ones(4)).tolist()
    [1.0, 2.5, 2.5, 5.0]
    >>> isotonic(np.array([3.0, 0.0]), np.array([2.0, 1.0])).tolist()
    [2.0, 2.0]
    """
    count = values.shape[-1]
    start = np.zeros((*values.shape[:-1], 1))
    mass = np.concatenate([start, weights.cumsum(axis=-1)], axis=-1)
    sums = np.concatenate([start, (weights * values).cumsum(axis=-1)], axis=-1)
    first, last = np.arange(count)[:, None], np.arange(count)[None, :]
    inside = first <= last
    # Means [..., a, b] over the knots a to b, where a is not beyond b.
    spans = np.where(inside, mass[..., None, 1:] - mass[..., :-1, None], 1.0)
    means = np.where(inside, (sums[..., None, 1:] - sums[..., :-1, None]) / spans, np.inf)
    lowest = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.where(inside, lowest, -np.inf).max(axis=-2))
