"""Fewer points, always the same ones: steps are put into bins of equal width and averaged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def bin_edges(last_step: int, points: int) -> Numbers:
    """Bin `k` holds the steps above `edges[k]` up to `edges[k + 1]`; steps are counted from 1."""
    count = max(1, min(points, last_step))
    # Whole steps, so that no bin of a short run is empty while its neighbour holds two.
    return np.unique(np.round(np.linspace(0, max(last_step, 1), count + 1)))


def bin_of(steps: NDArray[np.int64], edges: Numbers) -> NDArray[np.int64]:
    """Which bin each step falls into; what lies outside goes to the nearest bin."""
    place = np.searchsorted(edges, steps, side="left") - 1
    return np.clip(place, 0, len(edges) - 2).astype(np.int64)


def binned_sum(
    values: Numbers,  # [row]; a NaN counts as nothing
    rows: NDArray[np.int64],  # [row], which task
    bins: NDArray[np.int64],  # [row], which bin
    shape: tuple[int, int],  # tasks, bins
) -> Numbers:
    """The sum of the values of each task and bin."""
    flat = rows * shape[1] + bins
    known = np.where(np.isfinite(values), values, 0.0)
    total = np.bincount(flat, weights=known, minlength=shape[0] * shape[1])
    return total.astype(np.float64).reshape(shape)


def binned_mean(
    values: Numbers,
    rows: NDArray[np.int64],
    bins: NDArray[np.int64],
    shape: tuple[int, int],
) -> Numbers:
    """The mean of the values of each task and bin, NaN where there is none."""
    count = binned_sum(np.isfinite(values).astype(np.float64), rows, bins, shape)
    total = binned_sum(values, rows, bins, shape)
    return divided(total, count)


def divided(total: Numbers, count: Numbers) -> Numbers:
    """`total` over `count`, NaN where there was nothing to count."""
    shape = np.broadcast_shapes(total.shape, count.shape)
    out: Numbers = np.divide(total, count, out=np.full(shape, np.nan), where=count > 0)
    return out


def carry_forward(values: Numbers) -> Numbers:
    """Each NaN along the last axis becomes the last number before it; leading ones stay NaN."""
    known = np.isfinite(values)
    places = np.where(known, np.arange(values.shape[-1]), 0)
    latest = np.maximum.accumulate(places, axis=-1)
    return np.take_along_axis(values, latest, axis=-1)


def mean_over(values: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Mean, lowest and highest over the first axis, of what is known; NaN where nothing is."""
    known = np.isfinite(values)
    count = known.sum(axis=0).astype(np.float64)
    total = np.where(known, values, 0.0).sum(axis=0)
    low = np.where(known, values, np.inf).min(axis=0)
    high = np.where(known, values, -np.inf).max(axis=0)
    none = count == 0
    return divided(total, count), np.where(none, np.nan, low), np.where(none, np.nan, high)
