"""Forecasts whose laws are known, so that their optima can be found by other means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures import MixtureLimits, MixtureTable, MixtureTarget

Floats = NDArray[np.float64]
Law = Callable[[Floats], Floats]  # [mixture, domain] to [mixture, metric]


@dataclass(frozen=True, eq=False)
class KnownForecast:
    """What it predicts is `laws[0]`'s mean with the others; its draws are the laws."""

    table: MixtureTable
    laws: tuple[Law, ...]
    spread: float = 0.0  # noise of a run

    def predict(self, shares: Floats) -> Floats:
        return self.draws(shares).mean(axis=0)

    def draws(self, shares: Floats) -> Floats:
        return np.array([law(shares) for law in self.laws])

    def noise(self, shares: Floats) -> Floats:
        return np.full((len(shares), len(self.table.metrics)), self.spread)

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        low, high = np.quantile(self.draws(shares), [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return low - self.spread, high + self.spread


def effective_law(seed: int, domains: int = 3, metrics: int = 3) -> Law:
    """c + (e + s.w)^-a for each metric: convex, and lowest inside for a mean of several."""
    random = np.random.default_rng(seed)
    helps = random.gamma(0.5, 2.0, size=(domains, metrics)) + 0.02
    levels, powers = random.uniform(1, 3, metrics), random.uniform(0.2, 0.8, metrics)
    return lambda shares: levels + (0.05 + shares @ helps) ** -powers


def two_valleys(shares: Floats) -> Floats:
    """Not convex: a wide valley at (0.7, 0.2, 0.1), a deeper and narrower one at (0.1, 0.2, 0.7)."""
    wide = np.exp(-((shares - [0.7, 0.2, 0.1]) ** 2).sum(axis=1) / 0.1)
    deep = 1.2 * np.exp(-((shares - [0.1, 0.2, 0.7]) ** 2).sum(axis=1) / 0.01)
    return -(wide + deep)[:, None]


def table_of(
    law: Law,
    *,
    runs: int = 12,
    domains: int = 3,
    seed: int = 0,
    larger_is_better: tuple[str, ...] = (),
) -> MixtureTable:
    """Runs on mixtures at random, without noise."""
    shares = np.random.default_rng(seed).dirichlet(np.ones(domains), size=runs)
    values = law(shares)
    return MixtureTable(
        domains=tuple(f"d{place}" for place in range(domains)),
        metrics=tuple(f"m{place}" for place in range(values.shape[1])),
        runs=tuple(f"run {place}" for place in range(runs)),
        shares=shares,
        values=values,
        larger_is_better=larger_is_better,
    )


def known(law: Law, *, domains: int = 3, **options: object) -> KnownForecast:
    """A forecast that knows the one law there is."""
    return KnownForecast(table_of(law, domains=domains, **options), (law,))  # type: ignore[arg-type]


def grid_of_three(parts: int = 200) -> Floats:
    """Every mixture of three domains in steps of 1/`parts`."""
    first, second = np.meshgrid(np.arange(parts + 1), np.arange(parts + 1), indexing="ij")
    inside = first + second <= parts
    first, second = first[inside], second[inside]
    return np.column_stack([first, second, parts - first - second]) / parts


def lowest_on_grid(
    forecast: KnownForecast, target: MixtureTarget, limits: MixtureLimits
) -> tuple[float, Floats]:
    """The oracle: every mixture of a fine grid that the limits allow, one by one."""
    grid = grid_of_three()
    domains = forecast.table.domains
    allowed = grid[limits.feasible(domains).contains(grid)]
    drawn = forecast.draws(limits.effective(allowed, domains))
    values = target.of(drawn, forecast.table).mean(axis=0)
    return float(values.min()), allowed[values.argmin()]
