"""The forecast at one size of model, from the runs of all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from taskmix.errors import InputError
from taskmix.mixtures._forecast import Forecast, forecast_mixtures
from taskmix.mixtures._scales._link import Link, lines_at, link_sizes
from taskmix.mixtures._scales._pairs import group_mixtures, size_in_words
from taskmix.mixtures._table import Floats, MixtureTable


@dataclass(frozen=True, eq=False)
class SizeForecast:
    """A forecast at one size: the base size's, moved by a line and a remainder for each metric.

    `remarks` say what it rests on.
    """

    table: MixtureTable  # all runs, as they would have been at this size
    size: float
    base: Forecast
    base_size: float
    remarks: tuple[str, ...]
    _alone: Forecast  # of the base size's runs alone, which tells the noise of a single run
    _link: Link
    _level: Floats  # [1 + draw, metric]
    _slope: Floats  # [1 + draw, metric]

    def predict(self, shares: Floats) -> Floats:
        """[mixture, metric], expected."""
        scaled = self._link.units.scaled(self.base.predict(shares))
        return np.asarray(self._moved(scaled[None], shares, slice(0, 1))[0])

    def draws(self, shares: Floats) -> Floats:
        """[draw, mixture, metric]: equally likely laws without noise, the same ones in every call."""
        scaled = self._link.units.scaled(self.base.draws(shares))
        return self._moved(scaled, shares, slice(1, None))

    def noise(self, shares: Floats) -> Floats:
        """[mixture, metric], the standard deviation of a run around its law."""
        small = self._alone.noise(shares)
        if self.size == self.base_size:
            return small
        if self.size not in self._link.sizes:
            return np.asarray(small * np.abs(self._slope[0]))
        # Where the noise depends on the mixture, it does so at all sizes: the runs here tell how large
        # it is.
        typical = np.sqrt((self._alone.noise(self._alone.table.shares) ** 2).mean(axis=0))
        return np.asarray(self._link.noise * small / np.maximum(typical, 1e-12))

    def interval(self, shares: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        """Where the metrics of a run on each mixture will lie, [mixture, metric] twice."""
        wide = float(norm.ppf(0.5 + level / 2))
        middle = self.predict(shares)
        spread = wide * np.hypot(self.draws(shares).std(axis=0), self.noise(shares))
        return middle - spread, middle + spread

    def _moved(self, scaled: Floats, shares: Floats, draws: slice) -> Floats:
        units = self._link.units
        left = np.einsum("wt,dtm->dwm", units.terms(shares), self._link.remainders[draws])
        lines = self._level[draws, None] + self._slope[draws, None] * scaled
        moved = lines + self._link.distance(self.size) * left
        return np.asarray(units.center + units.spread * moved)


def forecast_at_size(
    table: MixtureTable, size: float, *, draws: int = 64, seed: int = 0
) -> SizeForecast:
    """Every metric of every mixture at one size of model, from the runs of all sizes.

    The size with the most mixtures is the base: its forecast is a control variate for the others. A
    size that was never trained is reached by a law in size, with intervals that widen with the
    distance.

    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0, 1, 16)])
    >>> small = np.sqrt(shares)
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("a", "b"), runs=tuple(map(str, range(20))),
    ...     shares=np.concatenate([shares, shares[::5]]), sizes=np.repeat([1e6, 6e7], [16, 4]),
    ...     values=np.concatenate([small, 0.9 * small[::5] - 1.0]),
    ... )
    >>> forecast = forecast_at_size(table, 6e7)
    >>> round(float(forecast.predict(np.array([[0.5, 0.5]]))[0, 0]), 1)
    -0.4
    """
    if table.sizes is None:
        raise InputError(
            "A forecast at a size of model should rest on runs whose sizes are known. Found a table "
            "without "
            "sizes. Give them as `sizes`, one a run."
        )
    if not size > 0:
        raise InputError(f"`size` should be a number of parameters above 0. Found {size}.")
    base_size = _base_size(table, size)
    base = alone = forecast_mixtures(table.of_size(base_size), draws=draws, seed=seed)
    others = table.only(table.sizes != base_size)
    link = link_sizes(base, alone, base_size, others, seed)
    # Runs of the size asked for tell how it differs; all others can only tell of the shape that sizes
    # share.
    helpers = [each for each in link.sizes if each != size]
    if helpers:
        pooled = _pool(table, base_size, link, helpers)
        base = forecast_mixtures(pooled, draws=draws, seed=seed)
        link = link_sizes(base, alone, base_size, others, seed)
    level, slope = lines_at(link, size, np.random.default_rng([seed, 1]))
    remarks = _remarks(table, size, base_size)
    forecast = SizeForecast(table, size, base, base_size, remarks, alone, link, level, slope)
    return replace(forecast, table=_at_this_size(table, forecast))


def _base_size(table: MixtureTable, size: float) -> float:
    """The size with the most mixtures; of equals, that nearest to the one asked for."""
    counts = {
        each: len(group_mixtures(part.shares, part.values).counts)
        for each in table.known_sizes
        for part in [table.of_size(each)]
    }
    return max(counts, key=lambda each: (counts[each], -abs(np.log(each / size))))


def _pool(table: MixtureTable, base_size: float, link: Link, helpers: list[float]) -> MixtureTable:
    """One row for each mixture: the mean of its runs at these sizes, moved to the base size."""
    base = table.of_size(base_size)
    shares, values = [base.shares], [base.values]
    for size in helpers:
        part = table.of_size(size)
        shares.append(part.shares)
        values.append(link.to_base(size, part.shares, part.values))
    # Rows of one mixture in different folds would tell a law what it is asked: so one row each.
    grouped = group_mixtures(np.concatenate(shares), np.concatenate(values))
    return replace(
        base,
        runs=tuple(f"mixture {number + 1}" for number in range(len(grouped.shares))),
        shares=grouped.shares,
        values=grouped.values,
    )


def _at_this_size(table: MixtureTable, forecast: SizeForecast) -> MixtureTable:
    assert table.sizes is not None
    values = table.values.copy()
    units, link = forecast._link.units, forecast._link
    for size in table.known_sizes:
        rows = table.sizes == size
        if size == forecast.size:
            continue
        shares, there = table.shares[rows], values[rows]
        at_base = there if size == link.base else link.to_base(size, shares, there)
        values[rows] = forecast._moved(units.scaled(at_base)[None], shares, slice(0, 1))[0]
    return replace(table, values=values, sizes=None)


def _remarks(table: MixtureTable, size: float, base_size: float) -> tuple[str, ...]:
    sizes = table.known_sizes
    here, base = size_in_words(size), size_in_words(base_size)
    if size in sizes:
        count = len(table.of_size(size))
        if size == base_size:
            others = len(table) - count
            return (
                f"At {here}: {count} runs of this size, and {others} of other sizes moved to it.",
            )
        return (
            f"At {here}: the forecast of {base}, moved by what {count} runs of this size tell of "
            "levels, "
            "slopes and remainders.",
        )
    if len(sizes) == 1:
        return (
            f"No run of {here} is there, and runs of {base} alone: what you see are values at {base}. "
            "The order "
            f"of mixtures may hold at {here}; nothing here shows that it does.",
        )
    words = (
        f"No run of {here} is there: levels and slopes are extrapolated from {len(sizes)} sizes, "
        f"{size_in_words(sizes[0])} to {size_in_words(sizes[-1])}."
    )
    if len(sizes) == 2:
        words += " Two sizes do not tell how the fall with size slows down, so the levels are wide."
    return (words,)
