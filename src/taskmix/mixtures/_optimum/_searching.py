"""The lowest point of a function of mixtures: many starts at once, then the best of them refined.

1. Candidates: runs that were seen, mixtures at random, sparse ones, single domains, pairs of them.
2. The best, far from each other, go down by projected gradient: slopes by differences and a search
   along each way, all starts and all steps in one call, because a forecast answers hundreds of mixtures
   about as fast as one.
3. The best few are finished by SLSQP (Kraft, 1988; `scipy.optimize`), which knows curvature, and by
   exchanging ever smaller shares between domains, which needs no slopes: a forecast may have steps
   (trees), and the worst of several metrics has edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._finishing import (
    Judge,
    exchange_shares,
    finish_mixture,
    finish_worst,
    measure_slopes,
)
from taskmix.mixtures._table import Floats

LONGEST = 0.5  # in shares: the first step that is tried along a way
LENGTHS = 4.0 ** np.array([1, 0, -1, -2, -3, -5])  # tried at once, times the step that last paid


@dataclass(frozen=True, kw_only=True)
class SearchEffort:
    """How much is tried; the defaults find the optimum of 17 domains in about a second."""

    random: int = 512  # mixtures at random, half of them sparse
    starts: int = 12
    descents: int = 25  # steps of all starts
    finished: int = 3  # starts that SLSQP and exchanges finish
    exchanges: int = 60


def search_mixture(
    judge: Judge,
    feasible: FeasibleShares,
    seen: Floats,  # [mixture, domain], mixtures worth looking at, allowed or not
    generator: np.random.Generator,
    *,
    parts: Judge
    | None = None,  # [mixture, part], where the worst of these is what `judge` is about
    effort: SearchEffort | None = None,
) -> tuple[Floats, float]:
    """The best allowed mixture [domain] and its value; never worse than a `seen` one."""
    effort = effort or SearchEffort()
    pool = candidate_mixtures(feasible, seen, generator, count=effort.random)
    values = judge(pool)
    starts = pool[spread_out(pool, values, effort.starts)]
    starts, reached = descend_together(
        lambda rows, _: judge(rows), feasible, starts, steps=effort.descents
    )
    best = np.argsort(reached, kind="stable")[: effort.finished]
    scale = float(np.std(values)) or 1.0
    if parts is not None:
        edges = [finish_worst(parts, feasible, starts[place], scale) for place in best]
        starts = np.concatenate([starts, edges])
        best = np.argsort(judge(starts), kind="stable")[: effort.finished]
    finished = [finish_mixture(judge, feasible, starts[place], scale) for place in best]
    every = np.concatenate([pool, starts, finished])
    place = int(np.nanargmin(judge(every)))
    return exchange_shares(judge, feasible, every[place], generator, rounds=effort.exchanges)


def candidate_mixtures(
    feasible: FeasibleShares, seen: Floats, generator: np.random.Generator, *, count: int = 512
) -> Floats:
    """Allowed mixtures of all kinds [mixture, domain]: `seen` ones (projected), corners, at random."""
    corners = np.eye(feasible.count)
    pairs = generator.integers(0, feasible.count, size=(2 * feasible.count, 2))
    halves = (corners[pairs[:, 0]] + corners[pairs[:, 1]]) / 2
    even = np.full((1, feasible.count), 1 / feasible.count)
    drawn = generator.dirichlet(np.full(feasible.count, 0.3), size=count // 2)
    near = generator.permutation(seen)[: count // 4]
    mixed = (near + generator.permutation(near)) / 2
    given = feasible.project(np.concatenate([seen, corners, halves, even, drawn, mixed]))
    return np.concatenate([given, feasible.sample(count // 2, generator)])


def spread_out(pool: Floats, values: Floats, count: int, *, apart: float = 0.1) -> list[int]:
    """Places of the best mixtures of which no two are nearer than `apart` (half the sum of changes)."""
    chosen: list[int] = []
    for place in np.argsort(values, kind="stable"):
        near = np.abs(pool[chosen] - pool[place]).sum(axis=1) / 2
        if not (near < apart).any():
            chosen.append(int(place))
        if len(chosen) == count:
            break
    return chosen


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
    moving = np.ones(len(starts), dtype=bool)
    sizes = np.full(
        len(starts), LONGEST / 4
    )  # the step that last paid: the next is sought around it
    for _ in range(steps):
        active = np.flatnonzero(moving)
        if len(active) == 0:
            break
        here = starts[active]
        owners = np.repeat(active, count)
        slopes = measure_slopes(lambda rows, of=owners: judge(rows, of), here, values[active])
        slopes -= slopes.mean(axis=1, keepdims=True)
        largest = np.abs(slopes).max(axis=1, keepdims=True)
        ways = -slopes / np.where(largest > 0, largest, 1.0)
        lengths = sizes[active][:, None] * LENGTHS
        tried = here[:, None] + lengths[:, :, None] * ways[:, None]
        each = lengths.shape[1]
        tried = feasible.project(
            tried.reshape(-1, count),
            lower=np.repeat(low[active], each, axis=0),
            upper=np.repeat(high[active], each, axis=0),
        )
        found = judge(tried, np.repeat(active, each)).reshape(len(active), each)
        place = np.nanargmin(np.where(np.isnan(found), np.inf, found), axis=1)
        rows = np.arange(len(active))
        better = found[rows, place] < values[active]
        taken = active[better]
        starts[taken] = tried.reshape(len(active), each, count)[rows, place][better]
        gained = values[taken] - found[rows, place][better]
        values[taken] = found[rows, place][better]
        sizes[taken] = np.minimum(lengths[rows, place][better], LONGEST)
        moving[active[~better]] = False
        moving[taken[gained <= 1e-12 * np.maximum(np.abs(values[taken]), 1e-12)]] = False
    return starts, values
