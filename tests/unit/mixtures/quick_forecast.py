"""A forecast that is fitted at once, for tests that are not about laws."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from taskmix.mixtures import MixtureTable

Floats = NDArray[np.float64]


class RidgeForecast:
    """Ridge regression on roots of shares."""

    def __init__(
        self,
        table: MixtureTable,
        draws: int = 64,
        seed: int = 0,
        ridge: float = 0.3,
        **more: object,
    ) -> None:
        self.table = table
        inputs = self._inputs(table.shares)
        self._center = np.nanmean(table.values, axis=0)
        values = np.nan_to_num(table.values - self._center)
        inverse = np.linalg.inv(inputs.T @ inputs + ridge * np.eye(inputs.shape[1]))
        self._weights = inverse @ inputs.T @ values  # [input, metric]
        left = values - inputs @ self._weights
        self._spread = np.sqrt((left**2).sum(axis=0) / max(len(table) - len(table.domains), 1))
        noise = np.random.default_rng(seed).standard_normal(
            (draws, inputs.shape[1], len(table.metrics))
        )
        root = np.linalg.cholesky(inverse)
        self._drawn = self._weights + self._spread * np.einsum("ij,djm->dim", root, noise)

    @staticmethod
    def _inputs(shares: Floats) -> Floats:
        return np.concatenate([np.sqrt(np.maximum(shares, 0)), np.ones((len(shares), 1))], axis=1)

    def predict(self, shares: Floats) -> Floats:
        return self._center + self._inputs(shares) @ self._weights

    def draws(self, shares: Floats) -> Floats:
        return self._center + np.einsum("ni,dim->dnm", self._inputs(shares), self._drawn)

    def noise(self, shares: Floats) -> Floats:
        return np.broadcast_to(self._spread, (len(shares), len(self._spread))).copy()

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        wide = float(norm.ppf(0.5 + level / 2))
        spread = wide * np.hypot(self.draws(shares).std(axis=0), self.noise(shares))
        return self.predict(shares) - spread, self.predict(shares) + spread


def use_forecast(monkeypatch: pytest.MonkeyPatch, make: Callable[..., Any]) -> None:
    """Wherever a forecast is fitted, `make` does it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("taskmix.mixtures.") and hasattr(module, "forecast_mixtures"):
            monkeypatch.setattr(module, "forecast_mixtures", make)


def be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every forecast is such a one."""
    use_forecast(monkeypatch, RidgeForecast)
