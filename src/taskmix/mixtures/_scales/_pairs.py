"""The same mixtures at two sizes of model: their values, trained or forecast, and how noisy each is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._forecast import Forecast, forecast_mixtures
from taskmix.mixtures._optimum._target import MixtureTarget
from taskmix.mixtures._scales._ranks import FEWEST, NOISE_DRAWS, rank_reliability
from taskmix.mixtures._table import Floats, MixtureTable

SAME_SHARE = 4  # decimals; tables are often written with three or four
REPEATS_THAT_TELL = 3  # degrees of freedom; a variance of fewer says little
MIXTURES_FOR_LAW = 12  # from which on a law's misfit is worth reading as noise
FEWEST_VALUES = 8  # of a metric, for a law of it


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Distinct mixtures of runs of one size, each with the mean of its runs."""

    shares: Floats  # [mixture, domain]
    values: Floats  # [mixture, column]; columns are the metrics, then the target if there is one
    counts: NDArray[np.intp]  # [mixture], how many runs
    noise: Floats  # [column], variance of a single run by repeated mixtures; NaN where none tell
    freedom: NDArray[np.intp]  # [column], degrees of freedom behind it


def keys_of(shares: Floats) -> list[bytes]:
    """One key a row, equal where the mixtures are."""
    # Adding zero turns the -0.0 that rounding can leave into 0.0, whose bytes differ.
    return [row.tobytes() for row in np.round(shares, SAME_SHARE) + 0.0]


def columns_of(values: Floats, table: MixtureTable, target: MixtureTarget | None) -> Floats:
    """[..., row, column]: the metrics as losses, then the target if there is one."""
    losses = np.asarray(values * table.signs)
    if target is None:
        return losses
    return np.concatenate([losses, target.of(values, table)[..., None]], axis=-1)


def group_mixtures(shares: Floats, columns: Floats) -> Mixtures:
    """One row for each distinct mixture, in the order in which they come."""
    keys = keys_of(shares)
    first: dict[bytes, int] = {}
    groups = np.array([first.setdefault(key, len(first)) for key in keys])
    members = [np.flatnonzero(groups == group) for group in range(len(first))]
    width = columns.shape[1]
    known = ~np.isnan(columns)
    filled = np.where(known, columns, 0.0)
    values = np.full((len(members), width), np.nan)
    squares, freedom = np.zeros(width), np.zeros(width, dtype=np.intp)
    for group, rows in enumerate(members):
        here = known[rows].sum(axis=0)
        sums = filled[rows].sum(axis=0)
        has = here > 0
        values[group, has] = sums[has] / here[has]
        squares += (np.where(known[rows], columns[rows] - values[group], 0.0) ** 2).sum(axis=0)
        freedom += np.maximum(here - 1, 0)
    noise = np.divide(squares, freedom, out=np.full(width, np.nan), where=freedom > 0)
    return Mixtures(
        shares=shares[[rows[0] for rows in members]],
        values=values,
        counts=np.array([len(rows) for rows in members]),
        noise=noise,
        freedom=freedom,
    )


def match_mixtures(small: Mixtures, large: Mixtures) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the mixtures that both have."""
    place = {key: number for number, key in enumerate(keys_of(small.shares))}
    both = [
        (place[key], number) for number, key in enumerate(keys_of(large.shares)) if key in place
    ]
    places = np.array(both, dtype=np.intp).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def pairs_of_sizes(table: MixtureTable) -> list[tuple[float, float]]:
    """Every small size with every larger one."""
    sizes = table.known_sizes
    if len(sizes) < 2:
        raise InputError(
            "To see how ranks carry over, a table should have runs of two or more sizes of model. "
            f"Found {len(sizes) or 1}. Give the sizes of the models, one a run."
        )
    return [(low, high) for place, low in enumerate(sizes) for high in sizes[place + 1 :]]


def size_in_words(size: float) -> str:
    """1 M, 60 M, 1.5 B."""
    for name, unit in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g}"


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
