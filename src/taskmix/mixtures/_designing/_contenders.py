"""Mixtures that may be the best one: by the mean of all laws, by one of the draws, or in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._designing._asking import Asked
from taskmix.mixtures._optimum import (
    FeasibleShares,
    candidate_mixtures,
    optima_of_draws,
    search_mixture,
)
from taskmix.mixtures._table import Floats

BETWEEN = (
    120  # mixtures between two that may be best: after more runs the answer is likely to be there
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Contenders:
    """Mixtures [mixture, domain] with their targets by each draw [draw, mixture]."""

    shares: Floats
    targets: Floats

    @property
    def recommended(self) -> int:
        """The one of the lowest target in the mean over draws."""
        return int(np.argmin(self.targets.mean(axis=0)))

    @property
    def best_of_each(self) -> Floats:
        """[draw], the lowest target that a draw knows of."""
        return np.asarray(self.targets.min(axis=1))

    def regrets(self, place: int) -> Floats:
        """[draw], by how much a mixture's target exceeds the draw's best; never below 0."""
        return np.asarray(self.targets[:, place] - self.best_of_each)

    def closest(self, count: int) -> NDArray[np.int64]:
        """[contender], places of those that matter: the recommended, each draw's best, the next."""
        winners = np.unique(np.argmin(self.targets, axis=1))
        in_mean = np.argsort(self.targets.mean(axis=0), kind="stable")
        behind = (self.targets - self.best_of_each[:, None]).min(axis=0)
        nearly = np.argsort(behind, kind="stable")
        ranked = [in_mean[0], *winners, *np.ravel(np.column_stack([in_mean, nearly]))]
        return np.array(list(dict.fromkeys(int(place) for place in ranked))[:count])


def find_contenders(
    asked: Asked,
    feasible: FeasibleShares,
    random: np.random.Generator,
    *,
    also: Floats | None = None,  # [mixture, domain], allowed mixtures that should be among them
) -> Contenders:
    """The optimum of the mean, that of each draw, mixtures between these, and some of every kind."""
    judged, seen = asked.judged, asked.forecast.table.shares
    best, _ = search_mixture(judged.value, feasible, seen, random, parts=judged.edges)
    broad = candidate_mixtures(feasible, seen, random)
    given = [best[None]] if also is None else [best[None], also]
    optima, _ = optima_of_draws(judged, feasible, np.concatenate([broad, *given]))
    ends = np.concatenate([np.repeat(best[None], len(optima) // 2, axis=0), optima])
    one, other = (ends[random.integers(len(ends), size=BETWEEN)] for _ in range(2))
    between = one + random.random((BETWEEN, 1)) * (other - one)  # allowed, as the limits are convex
    shares = np.concatenate([*given, optima, between, broad])
    return Contenders(shares=shares, targets=judged.each(shares))
