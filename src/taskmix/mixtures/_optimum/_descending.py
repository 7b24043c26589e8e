"""Many mixtures go down at once, each along the slopes of a function of its own.

Slopes are measured by differences, and several steps tried along two ways: that of the gradient,
projected onto what is allowed, which brings domains in that had no share, and that of shares multiplied
by what each promises (exponentiated gradient; Kivinen and Warmuth, 1997), which moves small shares by
small steps. All starts and steps are one call, because a forecast answers hundreds of mixtures about as
fast as one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._finishing import measure_slopes
from taskmix.mixtures._table import Floats

LENGTHS = 4.0 ** np.arange(1, -3, -1)  # tried at once, times the step that last paid
FIRST = np.array([0.125, 1.0])  # of the two ways: in shares, and in logarithms of shares
LONGEST = np.array([0.5, 4.0])
ABSENT = 1e-6  # the share that a domain without any is taken to have where shares are multiplied


def descend_together(
    judge: Callable[[Floats, NDArray[np.intp]], Floats],  # mixtures, and the start that each is of
    feasible: FeasibleShares,
    starts: Floats,
    *,
    steps: int,
    lower: Floats | None = None,  # [start, domain], narrower bounds than the limits'
    upper: Floats | None = None,
) -> tuple[Floats, Floats]:
    """All starts go down together [start, domain]; with their values [start]. None ever rises."""
    starts, count = starts.copy(), starts.shape[1]
    low = np.broadcast_to(feasible.lower if lower is None else lower, starts.shape)
    high = np.broadcast_to(feasible.upper if upper is None else upper, starts.shape)
    values = judge(starts, np.arange(len(starts)))
    sizes = np.tile(FIRST, (len(starts), 1))  # [start, way], the step that last paid
    active = np.arange(len(starts))
    for _ in range(steps):
        here, owners = starts[active], active
        slopes = measure_slopes(_of_starts(judge, owners, count), here, values[active])
        tried = _steps(here, slopes, sizes[active])  # [start, step, domain]
        each = tried.shape[1]
        tried = feasible.project(
            tried.reshape(-1, count),
            lower=np.repeat(low[active], each, axis=0),
            upper=np.repeat(high[active], each, axis=0),
        ).reshape(tried.shape)
        found = _of_starts(judge, owners, each)(tried.reshape(-1, count)).reshape(-1, each)
        place = np.where(np.isnan(found), np.inf, found).argmin(axis=1)
        rows = np.arange(len(active))
        gained = values[active] - found[rows, place]
        paid = gained > 1e-12 * np.maximum(np.abs(values[active]), 1e-12)
        active, rows, place = active[paid], rows[paid], place[paid]
        if len(active) == 0:
            break
        starts[active], values[active] = tried[rows, place], found[rows, place]
        way, step = np.divmod(place, len(LENGTHS))
        sizes[active, way] = np.minimum(sizes[active, way] * LENGTHS[step], LONGEST[way])
    return starts, values


def _of_starts(
    judge: Callable[[Floats, NDArray[np.intp]], Floats], starts: NDArray[np.intp], each: int
) -> Callable[[Floats], Floats]:
    """Judges rows of which so many, one after another, are of each of the starts."""
    owners = np.repeat(starts, each)
    return lambda rows: judge(rows, owners)


def _steps(here: Floats, slopes: Floats, sizes: Floats) -> Floats:
    """Where the steps lead [start, step, domain]: those of the first way, then of the second."""
    slopes = slopes - slopes.mean(axis=1, keepdims=True)
    largest = np.abs(slopes).max(axis=1, keepdims=True)
    ways = (-slopes / np.where(largest > 0, largest, 1.0))[:, None]
    lengths = sizes[:, :, None] * LENGTHS
    straight = here[:, None] + lengths[:, 0, :, None] * ways
    factors = np.exp(np.clip(lengths[:, 1, :, None] * ways, -5.0, 5.0))
    multiplied = np.maximum(here, ABSENT)[:, None] * factors
    multiplied = multiplied / multiplied.sum(axis=2, keepdims=True)
    return np.concatenate([straight, multiplied], axis=1)
