"""The two sides of a comparison between sizes: values of the same mixtures, and how noisy each is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._optimum import MixtureTarget
from taskmix.mixtures._scales._pairs import (
    Mixtures,
    columns_of,
    match_mixtures,
)
from taskmix.mixtures._scales._ranks import FEWEST, NOISE_DRAWS, rank_reliability
from taskmix.mixtures._table import Floats

REPEATS_THAT_TELL = 3  # degrees of freedom; a variance of fewer says little
MIXTURES_FOR_LAW = 12  # from which on a law's misfit is worth reading as noise


@dataclass(frozen=True, eq=False)
class Side:
    """One size's part."""

    values: Floats  # [mixture, column]
    noise: Floats  # [column], variance of these values by noise; NaN where it is unknown
    repeated: NDArray[np.bool_]  # [column], whether the noise comes from repeated runs
    is_forecast: bool = False

    def reliability(self, column: int, known: NDArray[np.bool_]) -> float:
        """The part of the ranks' variance between mixtures that is no noise; NaN where it is unknown."""
        values, noise = self.values[known, column], float(self.noise[column])
        return rank_reliability(values, noise, is_forecast=self.is_forecast)


@dataclass(frozen=True, eq=False)
class ComparedSides:
    """The same mixtures at two sizes."""

    small: Side
    large: Side
    matched: bool  # trained at both sizes; otherwise the small side is a forecast


def compare_sizes(
    small: Mixtures,
    large: Mixtures,
    target: MixtureTarget | None,
    forecast_small: Callable[[], Forecast | None],
    forecast_large: Callable[[], Forecast | None],
) -> ComparedSides:
    """Mixtures trained at both sizes where there are enough, otherwise the small size's forecast."""
    left, right = match_mixtures(small, large)
    instead = forecast_small() if len(left) < FEWEST else None
    if instead is None:
        return ComparedSides(
            _trained(small, left, target, forecast_small),
            _trained(large, right, target, forecast_large),
            matched=True,
        )
    everywhere = np.arange(len(large.shares))
    return ComparedSides(
        _forecast(instead, large.shares, target),
        _trained(large, everywhere, target, forecast_large),
        matched=False,
    )


def _trained(
    mixtures: Mixtures,
    places: NDArray[np.intp],
    target: MixtureTarget | None,
    forecast: Callable[[], Forecast | None],
) -> Side:
    repeated = mixtures.freedom >= REPEATS_THAT_TELL
    noise = np.where(repeated, mixtures.noise, np.nan)
    if len(places) < FEWEST:  # too few to compare, whatever their noise
        return Side(mixtures.values[places], noise, repeated)
    law = None
    if not repeated.all() and len(mixtures.shares) >= MIXTURES_FOR_LAW:
        law = forecast()
    if law is not None:
        told = _noise_of_law(law, mixtures.shares[places], target)
        noise = np.where(repeated, noise, told)
    each = float((1.0 / mixtures.counts[places]).mean())
    return Side(mixtures.values[places], noise * each, repeated)


def _noise_of_law(forecast: Forecast, shares: Floats, target: MixtureTarget | None) -> Floats:
    """[column], the mean variance of a run around its law; that of the target is simulated."""
    spread, middle = forecast.noise(shares), forecast.predict(shares)
    random = np.random.default_rng(0)
    drawn = middle + spread * random.standard_normal((NOISE_DRAWS, *middle.shape))
    columns = columns_of(drawn, forecast.table, target)
    noise: Floats = columns.var(axis=0).mean(axis=0)
    noise[: middle.shape[1]] = (spread**2).mean(axis=0)
    return noise


def _forecast(forecast: Forecast, shares: Floats, target: MixtureTarget | None) -> Side:
    values = columns_of(forecast.predict(shares), forecast.table, target)
    unsure = columns_of(forecast.draws(shares), forecast.table, target).var(axis=0).mean(axis=0)
    return Side(values, unsure, np.ones(values.shape[1], dtype=bool), is_forecast=True)
