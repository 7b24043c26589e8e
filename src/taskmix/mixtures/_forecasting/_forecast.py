"""A forecast: every metric of every mixture, as a mean and as equally likely laws."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.stats import norm

from taskmix.mixtures._table import Floats, MixtureTable


class Forecast(Protocol):
    """What a mixture will give.

    Shares [mixture, domain] may sum to less than 1: the rest of the budget teaches nothing. Values are
    in the table's units, so that those in `table.larger_is_better` rise as they get better.
    """

    @property
    def table(self) -> MixtureTable:
        """The runs it rests on, all of one size."""

    def predict(self, shares: Floats) -> Floats:
        """[mixture, metric], expected."""

    def draws(self, shares: Floats) -> Floats:
        """[draw, mixture, metric]: equally likely laws without noise, the same ones in every call."""

    def noise(self, shares: Floats) -> Floats:
        """[mixture, metric], the standard deviation of a run around its law."""

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        """Where the metrics of a run on each mixture will lie, [mixture, metric] twice."""


class _Ridge:
    """A stand-in: ridge regression on roots of shares."""

    def __init__(self, table: MixtureTable, draws: int, seed: int) -> None:
        self.table = table
        inputs = self._inputs(table.shares)
        self._center = np.nanmean(table.values, axis=0)
        values = np.nan_to_num(table.values - self._center)
        gram = inputs.T @ inputs + 0.3 * np.eye(inputs.shape[1])
        inverse = np.linalg.inv(gram)
        self._weights = inverse @ inputs.T @ values  # [input, metric]
        left = values - inputs @ self._weights
        self._spread = np.sqrt((left**2).sum(axis=0) / max(len(table) - len(table.domains), 1))
        random = np.random.default_rng(seed)
        root = np.linalg.cholesky(inverse)
        noise = random.standard_normal((draws, inputs.shape[1], len(table.metrics)))
        self._drawn = self._weights + self._spread * np.einsum("ij,djm->dim", root, noise)

    @staticmethod
    def _inputs(shares: Floats) -> Floats:
        return np.concatenate([np.sqrt(shares), np.ones((len(shares), 1))], axis=1)

    def predict(self, shares: Floats) -> Floats:
        return self._center + self._inputs(shares) @ self._weights

    def draws(self, shares: Floats) -> Floats:
        return self._center + np.einsum("ni,dim->dnm", self._inputs(shares), self._drawn)

    def noise(self, shares: Floats) -> Floats:
        return np.broadcast_to(self._spread, (len(shares), len(self._spread))).copy()

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        wide = float(norm.ppf(0.5 + level / 2))
        spread = wide * np.hypot(self.draws(shares).std(axis=0), self.noise(shares))
        middle = self.predict(shares)
        return middle - spread, middle + spread


def forecast_mixtures(table: MixtureTable, *, draws: int = 64, seed: int = 0) -> Forecast:
    """Laws fitted to runs of one size, chosen or stacked out of fold."""
    return _Ridge(table, draws, seed)
