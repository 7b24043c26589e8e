"""A forecast of the metrics that runs of one size have; the others are unknown, not an error."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._table import Floats, MixtureTable

FEWEST_VALUES = 8  # of a metric, for a law of it


@dataclass(frozen=True, eq=False)
class KnownMetrics:
    """A forecast with NaN for metrics that it knows nothing of."""

    table: MixtureTable
    inner: Forecast
    known: NDArray[np.bool_]  # [metric]

    def predict(self, shares: Floats) -> Floats:
        return self._filled(self.inner.predict(shares))

    def draws(self, shares: Floats) -> Floats:
        return self._filled(self.inner.draws(shares))

    def noise(self, shares: Floats) -> Floats:
        return self._filled(self.inner.noise(shares))

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        low, high = self.inner.interval(shares, level)
        return self._filled(low), self._filled(high)

    def _filled(self, values: Floats) -> Floats:
        filled = np.full((*values.shape[:-1], len(self.known)), np.nan)
        filled[..., self.known] = values
        return filled


def forecast_known(table: MixtureTable, *, seed: int) -> Forecast | None:
    """The forecast of runs of one size; None where no metric has runs enough."""
    known = (~np.isnan(table.values)).sum(axis=0) >= FEWEST_VALUES
    if known.all():
        return forecast_mixtures(table, seed=seed)
    if not known.any():
        return None
    names = tuple(name for name, has in zip(table.metrics, known, strict=True) if has)
    some = replace(
        table,
        metrics=names,
        values=table.values[:, known],
        larger_is_better=tuple(name for name in table.larger_is_better if name in names),
    )
    rows = np.asarray(~np.isnan(some.values).all(axis=1))
    return KnownMetrics(table, forecast_mixtures(some.only(rows), seed=seed), known)
