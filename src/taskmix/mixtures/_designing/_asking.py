"""A forecast asked for what a target needs: draws of the metrics that count, and their noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._optimum import JudgedMixtures, MixtureLimits, MixtureTarget
from taskmix.mixtures._table import Floats

FEWEST_DRAWS = 8  # below, a covariance of draws says nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A forecast, the target, and the limits under which the answer is going to be used."""

    forecast: Forecast
    target: MixtureTarget
    limits: MixtureLimits

    def __post_init__(self) -> None:
        self.target.check(self.forecast.table)

    @property
    def used(self) -> NDArray[np.int64]:
        """[used metric], places of the metrics that the target is made of."""
        return np.flatnonzero(self.target.weights_in(self.forecast.table))

    @property
    def judged(self) -> JudgedMixtures:
        """Mixtures of the final run as numbers to be made small."""
        return JudgedMixtures(forecast=self.forecast, target=self.target, limits=self.limits)

    def draws(self, shares: Floats, *, is_final: bool) -> Floats:
        """[draw, mixture, used metric]; a final run repeats what is scarce, a small one need not.

        Their mean over draws is made the forecast's prediction: by chance it misses it a little,
        differently for each mixture, and of thousands of mixtures one would be best by chance alone.
        """
        if is_final:
            shares = self.limits.effective(shares, self.forecast.table.domains)
        found = self.forecast.draws(shares)[:, :, self.used]
        if len(found) < FEWEST_DRAWS:
            raise InputError(
                f"A forecast should have at least {FEWEST_DRAWS} draws to say what is worth running. "
                f"Found {len(found)}. Make it with more `draws`.",
                arguments=("draws",),
            )
        moved: Floats = found - found.mean(axis=0) + self.forecast.predict(shares)[:, self.used]
        return moved

    def noise(self, shares: Floats) -> Floats:
        """[mixture, used metric], standard deviations of a small run."""
        return self.forecast.noise(shares)[:, self.used]

    def given_noise(self, noise: float | Floats, count: int) -> Floats:
        """The same [mixture, used metric], where a caller knows better than the forecast."""
        every = np.broadcast_to(
            np.asarray(noise, dtype=np.float64), len(self.forecast.table.metrics)
        )
        if not (np.isfinite(every).all() and (every >= 0).all()):
            raise InputError(
                f"`noise` should be standard deviations of at least 0. Found {every.tolist()[:8]}.",
                arguments=("noise",),
            )
        return np.tile(every[self.used], (count, 1))

    def of(self, values: Floats) -> Floats:
        """The target [...] of values [..., used metric]; lower is better."""
        whole = np.zeros((*values.shape[:-1], len(self.forecast.table.metrics)))
        whole[..., self.used] = values
        return self.target.of(whole, self.forecast.table)

    def spread(self) -> float:
        """How far the targets of the runs lie apart, as a standard deviation."""
        targets = self.target.of(self.forecast.table.values, self.forecast.table)
        known = targets[np.isfinite(targets)]
        return float(known.std()) if len(known) else 0.0
