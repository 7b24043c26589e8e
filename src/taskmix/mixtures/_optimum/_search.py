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
from numpy.typing import NDArray

from taskmix.mixtures._optimum._descent import (
    Judge,
    descend_together,
    exchange_shares,
    finish_mixture,
    finish_worst,
)
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._target import JudgedMixtures
from taskmix.mixtures._table import Floats

DESCENTS = 6  # of each law from its best candidate; more of them raise the regret by a tenth


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
    if not judged.target.worst:  # the mean of a mean is that of the prediction
        return best
    seen = np.concatenate([best[None], seen])
    return search_mixture(judged.expected, feasible, seen, generator, effort=AGAIN)[0]


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


def optima_of_draws(
    judged: JudgedMixtures,
    feasible: FeasibleShares,
    candidates: Floats,  # [mixture, domain], allowed ones
    *,
    descents: int = DESCENTS,
) -> tuple[Floats, Floats]:
    """Each law's own best mixture [draw, domain] and its target there [draw], nearly.

    The best of the candidates by each law, refined; all laws at once.
    """
    by_law = judged.each(candidates)
    starts = candidates[by_law.argmin(axis=1)]

    def judge(rows: Floats, owners: NDArray[np.intp]) -> Floats:
        return judged.each(rows)[owners, np.arange(len(rows))]

    return descend_together(judge, feasible, starts, steps=descents)


def expected_regret(
    judged: JudgedMixtures, feasible: FeasibleShares, chosen: Floats, candidates: Floats
) -> float:
    """By how much the target of `chosen` [domain] is above each law's own optimum, in the mean.

    No more than the targets of the runs differ: of larger differences they say nothing.
    """
    _, lowest = optima_of_draws(judged, feasible, np.concatenate([candidates, chosen[None]]))
    behind = np.maximum(judged.each(chosen[None])[:, 0] - lowest, 0.0)
    return min(float(behind.mean()), judged.range_of_runs)
