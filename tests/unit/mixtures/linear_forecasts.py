"""A Bayesian linear law, whose beliefs after any runs are known exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures import MixtureTable

Floats = NDArray[np.float64]


def inputs_of(shares: Floats) -> Floats:
    """[mixture, input]: roots and shares, so that optima lie inside."""
    return np.concatenate([np.sqrt(shares), shares, np.ones((len(shares), 1))], axis=1)


class LinearForecast:
    """Weights of mean 0 and spread 1 before any run; noise that is known."""

    def __init__(
        self, table: MixtureTable, *, noise: float = 0.1, draws: int = 64, seed: int = 0
    ) -> None:
        self.table, self.spread = table, noise
        known = np.isfinite(table.values).all(axis=1)
        inputs, values = inputs_of(table.shares[known]), table.values[known]
        precision = inputs.T @ inputs / noise**2 + np.eye(inputs.shape[1])
        covariance = np.linalg.inv(precision)
        self.weights = covariance @ inputs.T @ values / noise**2  # [input, metric]
        random = np.random.default_rng(seed)
        luck = random.standard_normal((draws, *self.weights.shape))
        root = np.linalg.cholesky(covariance)
        self.drawn = self.weights + np.einsum("ij,djm->dim", root, luck)

    def predict(self, shares: Floats) -> Floats:
        return inputs_of(shares) @ self.weights

    def draws(self, shares: Floats) -> Floats:
        return np.einsum("ni,dim->dnm", inputs_of(shares), self.drawn)

    def noise(self, shares: Floats) -> Floats:
        return np.full((len(shares), len(self.table.metrics)), self.spread)

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        low, high = np.quantile(self.draws(shares), [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return low - self.spread, high + self.spread


def linear_table(
    *, domains: int = 4, metrics: int = 2, runs: int = 8, noise: float = 0.1, seed: int = 0
) -> MixtureTable:
    """Runs of a law drawn from what is believed before any run."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet(np.ones(domains), runs)
    weights = random.standard_normal((2 * domains + 1, metrics))
    values = inputs_of(shares) @ weights + noise * random.standard_normal((runs, metrics))
    return table_from(shares, values)


def table_from(shares: Floats, values: Floats) -> MixtureTable:
    return MixtureTable(
        domains=tuple(f"d{place}" for place in range(shares.shape[1])),
        metrics=tuple(f"m{place}" for place in range(values.shape[1])),
        runs=tuple(f"run {place}" for place in range(len(shares))),
        shares=shares,
        values=values,
    )
