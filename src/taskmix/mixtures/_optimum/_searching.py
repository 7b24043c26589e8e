"""The lowest point of a function of mixtures: many starts at once, then the best of them refined.

1. Candidates: runs that were seen, mixtures at random, sparse ones, single domains, pairs of them.
2. The best of them, far from each other, go down together (`descend_together`).
3. The best few are finished by SLSQP (Kraft, 1988; `scipy.optimize`), which knows curvature, and the
   best by exchanging ever smaller shares between domains, which needs no slopes: a forecast may have
   steps (trees), and the worst of several metrics has edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.mixtures._optimum._descending import descend_together
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._finishing import (
    Judge,
    exchange_shares,
    finish_mixture,
    finish_worst,
)
from taskmix.mixtures._optimum._judged import JudgedMixtures
from taskmix.mixtures._table import Floats


@dataclass(frozen=True, kw_only=True)
class SearchEffort:
    """How much is tried; the defaults find the optimum of 17 domains in 20,000 mixtures or so."""

    random: int = 512  # mixtures at random, half of them sparse
    starts: int = 12
    descents: int = 20  # steps of all starts
    finished: int = 3  # starts that SLSQP finishes
    exchanges: int = 40


# From a mixture that is nearly right, by a function that costs more.
AGAIN = SearchEffort(starts=4, descents=10, finished=1, exchanges=25)


def search_mixture(
    judge: Judge,
    feasible: FeasibleShares,
    seen: Floats,  # [mixture, domain], mixtures worth looking at, allowed or not
    generator: np.random.Generator,
    *,
    parts: Judge | None = None,  # [mixture, part], if the worst of these is what is judged
    effort: SearchEffort | None = None,
) -> tuple[Floats, float]:
    """The best allowed mixture [domain] and its value; never worse than a `seen` one."""
    effort = effort or SearchEffort()
    pool = candidate_mixtures(feasible, seen, generator, count=effort.random)
    values = judge(pool)
    scale = float(np.nanstd(values)) or 1.0
    starts = pool[spread_out(pool, values, effort.starts)]
    reached, lowest = descend_together(
        lambda rows, _: judge(rows), feasible, starts, steps=effort.descents
    )
    best = np.argsort(lowest, kind="stable")[: effort.finished]
    if parts is not None:
        edges = [finish_worst(parts, feasible, reached[place], scale) for place in best]
        reached = np.concatenate([reached, edges])
        lowest = np.concatenate([lowest, judge(np.array(edges))])
        best = np.argsort(lowest, kind="stable")[: effort.finished]
    ended = np.array([finish_mixture(judge, feasible, reached[place], scale) for place in best])
    every = np.concatenate([pool, reached, ended])
    place = int(np.nanargmin(np.concatenate([values, lowest, judge(ended)])))
    return exchange_shares(judge, feasible, every[place], generator, rounds=effort.exchanges)


def best_mixture(
    judged: JudgedMixtures, feasible: FeasibleShares, seen: Floats, generator: np.random.Generator
) -> Floats:
    """[domain]; where laws have to be drawn for its value, the search begins with the prediction."""
    best, _ = search_mixture(judged.guess, feasible, seen, generator, parts=judged.edges)
    if judged.is_plain:
        return best
    seen = np.concatenate([best[None], seen])
    return search_mixture(judged.value, feasible, seen, generator, effort=AGAIN)[0]


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
