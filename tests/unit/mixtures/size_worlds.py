"""Made-up laws at several sizes of model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from quick_forecast import Floats, RidgeForecast

from taskmix.mixtures import MixtureTable


def forecast_roots(table: MixtureTable, *, draws: int = 64, seed: int = 0) -> RidgeForecast:
    """Least squares on roots of shares: exact for the worlds below, with its own uncertainty."""
    return RidgeForecast(table, draws, seed, ridge=1e-6)


Law = Callable[[Floats], Floats]  # [mixture, domain] to [mixture, metric]


def roots_law(seed: int, *, domains: int = 4, metrics: int = 6) -> Law:
    """Losses around 4 that fall with the roots of shares; each metric varies by 0.3 between mixtures."""
    random = np.random.default_rng(seed)
    weights = random.normal(size=(domains, metrics))
    typical = np.sqrt(random.dirichlet(np.ones(domains), 400)) @ weights
    return lambda shares: 4 + 0.3 * (np.sqrt(shares) @ weights - typical.mean(0)) / typical.std(0)


def random_shares(random: np.random.Generator, count: int, domains: int = 4) -> Floats:
    return np.asarray(random.dirichlet(np.full(domains, 0.8), count))


def table_of(parts: Mapping[float, tuple[Floats, Floats]], **more: object) -> MixtureTable:
    """Sizes with their shares and values as one table."""
    shares = np.concatenate([each for each, _ in parts.values()])
    values = np.concatenate([each for _, each in parts.values()])
    counts = [len(each) for each, _ in parts.values()]
    return MixtureTable(
        domains=tuple(f"domain {number}" for number in range(shares.shape[1])),
        metrics=tuple(f"loss {number}" for number in range(values.shape[1])),
        runs=tuple(f"run {number}" for number in range(len(shares))),
        shares=shares,
        values=values,
        sizes=np.repeat(np.array(list(parts)), counts),
        **more,  # type: ignore[arg-type]
    )
