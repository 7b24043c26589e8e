"""A forecast by the law of effective data alone, quick enough to be made once for each domain."""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._domains._law import HEAD, worth_law
from taskmix.mixtures._domains._worth import Worths
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import normal_quantile


class WorthForecast:
    """A `Forecast` whose laws are drawn around the fit."""

    def __init__(
        self, table: MixtureTable, worths: Worths, *, draws: int = 128, seed: int = 0
    ) -> None:
        self.table = table
        random = np.random.default_rng(seed)
        self._theta = np.stack([fit.sample(draws, random) for fit in worths.fits], axis=1)
        self._best = np.stack([fit.theta for fit in worths.fits])[None]
        self._noise = np.array([fit.noise for fit in worths.fits])

    def _laws(self, theta: Floats, shares: Floats) -> Floats:
        data = np.einsum("lmk,nk->lmn", np.exp(theta[:, :, HEAD:]), shares)
        return np.asarray(worth_law(theta, data).transpose(0, 2, 1) * self.table.signs)

    def predict(self, shares: Floats) -> Floats:
        return np.asarray(self._laws(self._best, shares)[0])

    def draws(self, shares: Floats) -> Floats:
        return self._laws(self._theta, shares)

    def noise(self, shares: Floats) -> Floats:
        return np.tile(self._noise, (len(shares), 1))

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        spread = np.hypot(self.draws(shares).std(axis=0), self.noise(shares))
        wide = normal_quantile(level) * spread
        middle = self.predict(shares)
        return middle - wide, middle + wide
