"""What each domain of a table is worth for each metric, with what metrics of one kind have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from taskmix.mixtures._domains._law import HEAD, MetricWorth, WorthShape, fit_law, worth_law
from taskmix.mixtures._table import Floats, MixtureTable

FEWEST_ALIKE = 4  # metrics, to speak of what they have in common
EXPONENT_HELD, B_HELD = 0.05, 0.1  # of log a and log b, where a metric cannot say them
LEAST_PART = 4  # b of a metric is at least such a part of the usual one
LARGEST_WORTH = 20.0  # of log s; beyond, a law does not change any more


@dataclass(frozen=True)
class Depth:
    """How far metrics fall once a run has text of their own domain: for those that no run had.

    Their values lie in the upper part of the law, where b and the spread of the worths look alike, and
    so do a large exponent and what every run has; further down, where the own domain leads, they differ
    by factors. With text of their own, metrics of one kind come to like values: that says b.
    """

    floor: float  # the value of a metric of a run on nothing but its own domain
    drop: float  # from the mean without the own domain to the floor, in units of b
    least: float  # of b

    @classmethod
    def common_to(
        cls,
        table: MixtureTable,
        values: Floats,
        fits: Sequence[MetricWorth],
        columns: Mapping[int, int | None],
    ) -> Depth:
        floors, drops = [], []
        for place, column in columns.items():
            if column is not None:
                theta = fits[place].theta
                alone = np.exp(theta[[HEAD + column]])  # data of a run on nothing but this domain
                floors.append(float(worth_law(theta, alone)[0]))
                without = table.shares[:, column] == 0
                mean = np.nanmean(values[without if without.any() else slice(None), place])
                drops.append((mean - floors[-1]) / np.exp(theta[1]))
        b = np.exp(np.median([fits[place].theta[1] for place in columns]))
        return cls(
            float(np.median(floors)), max(float(np.median(drops)), 1.0), float(b) / LEAST_PART
        )

    def shape(self, shape: WorthShape, values: Floats) -> WorthShape:
        """The shape of a metric with these values, all without its own domain."""
        b = max((float(np.nanmean(values)) - self.floor) / self.drop, self.least)
        return WorthShape(
            np.array([np.log(b), *shape.centre[1:]]),
            np.array([B_HELD, EXPONENT_HELD, shape.spread[2]]),
        )


@dataclass(frozen=True, eq=False)
class Worths:
    """The laws of all metrics of a table, each fitted by itself and then with what they share."""

    fits: tuple[MetricWorth, ...]
    own: Floats  # [metric], log worth of its own domain for a law fitted without it; NaN: not known


def fit_worths(table: MixtureTable, measured: Sequence[str | None]) -> Worths:
    """The law of each metric; those of which larger is better are turned round.

    `measured` [metric] are the domains that metrics measure. These metrics are taken to be of one kind
    (losses on texts of domains), and lend each other the shape of their laws.
    """
    values = table.values * table.signs
    places = range(len(table.metrics))
    fits = [fit_law(table.shares, values[:, place]) for place in places]
    alike = [place for place in places if measured[place] is not None]
    own = np.full(len(fits), np.nan)
    columns = {place: _column(table, measured[place]) for place in alike}
    with_own = [fits[place] for place, column in columns.items() if column is not None]
    if len(with_own) >= FEWEST_ALIKE:
        shape = WorthShape.common_to(with_own)
        for place, column in columns.items():
            if column is not None:
                fits[place] = fit_law(table.shares, values[:, place], shape)
        depth = Depth.common_to(table, values, fits, columns)
        for place, column in columns.items():
            of_metric = values[:, place]
            if column is None:
                fits[place] = fit_law(table.shares, of_metric, depth.shape(shape, of_metric))
            else:
                own[place] = _own_left_out(table, of_metric, column, shape, depth)
    return Worths(tuple(fits), own)


def _column(table: MixtureTable, name: str | None) -> int | None:
    """Of a domain that was varied."""
    if name is None or name not in table.domains:
        return None
    place = table.domains.index(name)
    return place if np.ptp(table.shares[:, place]) > 0 else None


def _own_left_out(
    table: MixtureTable, values: Floats, own: int, shape: WorthShape, depth: Depth
) -> float:
    """What the own domain turns out to be worth for a law of the runs that did not have it."""
    known = np.isfinite(values)
    without = known & (table.shares[:, own] == 0)
    having = known & ~without
    if without.sum() < len(table.domains) or not having.any():
        return np.nan
    others = np.delete(table.shares, own, axis=1)
    fit = fit_law(others[without], values[without], depth.shape(shape, values[without]))
    data = others[having] @ np.exp(fit.log_worth)
    share, found = table.shares[having, own], values[having]

    def cost(log_worth: float) -> float:
        law = worth_law(fit.theta, data + share * np.exp(log_worth))
        return float(np.abs(law - found).sum())

    return float(minimize_scalar(cost, bounds=(-10.0, LARGEST_WORTH), method="bounded").x)
