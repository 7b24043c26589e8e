"""Made-up laws at several sizes of model, and a forecast that knows their form."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.stats import norm

from taskmix.mixtures import MixtureTable
from taskmix.mixtures._table import Floats


class RootForecast:
    """Least squares on roots of shares: exact for the worlds below, with its own uncertainty."""

    def __init__(self, table: MixtureTable, draws: int, seed: int) -> None:
        self.table = table
        inputs = self._inputs(table.shares)
        inverse = np.linalg.inv(inputs.T @ inputs + 1e-6 * np.eye(inputs.shape[1]))
        self._weights = inverse @ inputs.T @ table.values
        left = table.values - inputs @ self._weights
        self._spread = np.sqrt((left**2).sum(axis=0) / max(len(table) - inputs.shape[1], 1))
        root = np.linalg.cholesky(inverse)
        noise = np.random.default_rng(seed).standard_normal((draws, *self._weights.shape))
        self._drawn = self._weights + self._spread * np.einsum("ij,djm->dim", root, noise)

    @staticmethod
    def _inputs(shares: Floats) -> Floats:
        return np.column_stack([np.sqrt(shares), np.ones(len(shares))])

    def predict(self, shares: Floats) -> Floats:
        return np.asarray(self._inputs(shares) @ self._weights)

    def draws(self, shares: Floats) -> Floats:
        return np.asarray(self._inputs(shares) @ self._drawn)

    def noise(self, shares: Floats) -> Floats:
        return np.tile(self._spread, (len(shares), 1))

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        spread = norm.ppf(0.5 + level / 2) * np.hypot(
            self.draws(shares).std(axis=0), self.noise(shares)
        )
        return self.predict(shares) - spread, self.predict(shares) + spread


def forecast_roots(table: MixtureTable, *, draws: int = 64, seed: int = 0) -> RootForecast:
    return RootForecast(table, draws, seed)


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
