"""The mixture that makes a target small, and how far that answer can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._optimum._descent import descend_together
from taskmix.mixtures._optimum._distance import DistanceToRuns, measure_distance
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._search import best_mixture, candidate_mixtures, expected_regret
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget, interval_of
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import Interval, as_distribution, check_level

BEST_RUN = "the best run"
COARSE = (np.arange(1, 9) / 8) ** 2  # of the way to the end of a domain's range: finer near by
FINE = np.arange(1, 9) / 8  # of the way between two coarse places
DESCENTS = 3
ROUNDING = 1e-9  # of the target: below that a difference is none


@dataclass(frozen=True, kw_only=True)
class MixtureGain:
    """What the optimum gains over another mixture."""

    shares: Mapping[str, float]
    target: Interval  # of the other mixture
    gain: Interval  # its target minus the optimum's, paired by law: above 0 the optimum is better
    better: float  # probability that the optimum is better


@dataclass(frozen=True, kw_only=True)
class MixtureOptimum:
    """The mixture found, what it will give, and what else is as good.

    Intervals of targets are of the law, without the noise of a run; those of `metrics` are where a run
    on the mixture will lie.
    """

    shares: Mapping[str, float]
    target: Interval
    metrics: Mapping[str, Interval]
    gains: Mapping[str, MixtureGain]  # over `uniform`, `the best run`, `natural`, `the reference`
    best_run: str  # the name of the observed run whose mixture the forecast holds for the best
    regret: float  # expected: its target minus the lowest there is, by the same law
    equally_good: Mapping[str, tuple[float, float]]  # shares that cannot be told from the optimum's
    passes: Mapping[str, float] | None  # how often each domain is read; None without a supply
    distance: DistanceToRuns
    level: float  # of all intervals

    def row(self, domains: Sequence[str]) -> Floats:
        """[domain], the shares in the order of `domains`."""
        return np.array([self.shares[name] for name in domains])


def find_optimum(
    forecast: Forecast,
    target: MixtureTarget | None = None,
    limits: MixtureLimits | None = None,
    *,
    seed: int = 0,
    reference: Mapping[str, float] | None = None,  # shares by domain, one more to compare with
    level: float = 0.9,
    tolerance: float = 0.0,
) -> MixtureOptimum:
    """The allowed mixture whose target is lowest in the mean over the forecast's laws.

    `tolerance`, in units of the target, is a loss that does not matter where `equally_good` shares are
    named.

    >>> from taskmix.mixtures import forecast_mixtures
    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0.05, 0.95, 10)])
    >>> values = -np.sqrt(shares) @ [[1.0], [1.0]]  # least where both shares are one half
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss",), runs=tuple("abcdefghij"),
    ...     shares=shares, values=values,
    ... )
    >>> optimum = find_optimum(forecast_mixtures(table, laws=()))
    >>> abs(optimum.shares["web"] - 0.5) < 0.1
    True
    """
    check_level(level)
    target, limits, table = target or MixtureTarget(), limits or MixtureLimits(), forecast.table
    judged = JudgedMixtures(forecast=forecast, target=target, limits=limits)
    feasible = limits.feasible(table.domains)
    others = _others(table, limits, reference)
    generator = np.random.default_rng(seed)
    seen = np.concatenate([table.shares, *(row[None] for row in others.values())])
    best = best_mixture(judged, feasible, seen, generator)
    candidates = candidate_mixtures(feasible, seen, generator)
    best_run = _best_run(judged, feasible)
    others = {BEST_RUN: table.shares[best_run], **others}
    low, high = equally_good_ranges(judged, feasible, best, level=level, tolerance=tolerance)
    passes = limits.passes_of(best, table.domains)
    return MixtureOptimum(
        shares=shares_by_name(table.domains, best),
        target=_target_interval(judged, best, level),
        metrics=_metric_intervals(judged, best, level),
        gains=_gains(judged, best, others, level),
        best_run=table.runs[best_run],
        regret=expected_regret(judged, feasible, best, candidates),
        equally_good={
            name: (float(a), float(b)) for name, a, b in zip(table.domains, low, high, strict=True)
        },
        passes=None if passes is None else shares_by_name(table.domains, passes),
        distance=measure_distance(judged.taught(best[None])[0], table),
        level=level,
    )


def shares_by_name(domains: Sequence[str], row: Floats) -> dict[str, float]:
    """A row of an array as plain numbers by domain."""
    return {name: float(share) for name, share in zip(domains, row, strict=True)}


def _others(
    table: MixtureTable, limits: MixtureLimits, reference: Mapping[str, float] | None
) -> dict[str, Floats]:
    """Mixtures to compare with, by name."""
    count = len(table.domains)
    others = {"uniform": np.full(count, 1 / count)}
    if limits.supply is not None:
        supply = limits.supply_of(table.domains)
        if np.isfinite(supply).all() and supply.sum() > 0:
            others["natural"] = supply / supply.sum()
    if reference is not None:
        unknown = [name for name in reference if name not in table.domains]
        if unknown:
            raise InputError(
                f"`reference` should have shares of the table's domains. Found `{unknown[0]}`.",
                arguments=("reference",),
            )
        row = [reference.get(name, 0.0) for name in table.domains]
        others["the reference"] = as_distribution(row, name="reference")
    return others


def _best_run(judged: JudgedMixtures, feasible: FeasibleShares) -> int:
    """The run on the best mixture by the forecast, which noise misleads less than the best score.

    Among those that keep the limits, if any does.
    """
    table = judged.forecast.table
    allowed = feasible.contains(table.shares)
    values = judged.expected(table.shares)
    return int(np.argmin(np.where(allowed, values, np.inf) if allowed.any() else values))


def _target_interval(judged: JudgedMixtures, shares: Floats, level: float) -> Interval:
    return interval_of(judged.each(shares[None])[:, 0], level)


def _metric_intervals(judged: JudgedMixtures, best: Floats, level: float) -> dict[str, Interval]:
    taught = judged.taught(best[None])
    middle, (low, high) = judged.metrics(best[None])[0], judged.forecast.interval(taught, level)
    draws = len(judged.forecast.draws(taught))
    return {
        name: Interval(
            float(middle[place]), float(low[0, place]), float(high[0, place]), draws, level
        )
        for place, name in enumerate(judged.forecast.table.metrics)
    }


def _gains(
    judged: JudgedMixtures, best: Floats, others: Mapping[str, Floats], level: float
) -> dict[str, MixtureGain]:
    drawn = judged.each(np.array([best, *others.values()]))
    gains = {}
    for place, (name, shares) in enumerate(others.items(), start=1):
        gained = drawn[:, place] - drawn[:, 0]
        gains[name] = MixtureGain(
            shares=shares_by_name(judged.forecast.table.domains, shares),
            target=interval_of(drawn[:, place], level),
            gain=interval_of(gained, level),
            # One more law of which it is not known: so few laws are no proof of 100 %.
            better=float((((gained > 0) + 0.5 * (gained == 0)).sum() + 0.5) / (len(gained) + 1)),
        )
    return gains


def equally_good_ranges(
    judged: JudgedMixtures,
    feasible: FeasibleShares,
    optimum: Floats,  # [domain]
    *,
    level: float,
    tolerance: float,
) -> tuple[Floats, Floats]:
    """The least and the largest share of each domain [domain] that cannot be told from the optimum's.

    At every place the other shares are the best they can be. It counts as equally good where the
    interval of its target minus the optimum's, paired by law, reaches down to `tolerance`.
    """
    ends = []
    for end in feasible.ranges():
        here, beyond = optimum, end  # the shares that are as good, and the next that were tried
        for steps in (COARSE, FINE):
            places = here[:, None] + steps * (beyond - here)[:, None]
            path = _path(judged, feasible, optimum, places)
            fails = _excess(judged, optimum, path, level) > tolerance
            here, beyond = _bracket(np.column_stack([here, places]), fails)
        ends.append(here)
    return np.minimum(ends[0], optimum), np.maximum(ends[1], optimum)


def _path(
    judged: JudgedMixtures, feasible: FeasibleShares, optimum: Floats, places: Floats
) -> Floats:
    """The best mixtures found with a domain's share at each place, from the optimum outwards.

    `places` are [domain, place], and the mixtures [domain, place, domain]; all are rows of one search.
    """
    domains, count = places.shape
    rows, owners = np.arange(domains * count), np.repeat(np.arange(domains), count)
    lower, upper = (np.tile(bound, (len(rows), 1)) for bound in (feasible.lower, feasible.upper))
    lower[rows, owners] = upper[rows, owners] = places.ravel()
    starts = feasible.project(np.tile(optimum, (len(rows), 1)), lower=lower, upper=upper)
    moved, _ = descend_together(
        lambda shares, _: judged.guess(shares),
        feasible,
        starts,
        steps=DESCENTS,
        lower=lower,
        upper=upper,
    )
    return moved.reshape(domains, count, domains)


def _excess(judged: JudgedMixtures, optimum: Floats, path: Floats, level: float) -> Floats:
    """[domain, place], by how much the target is above the optimum's at the least."""
    drawn = judged.each(np.concatenate([optimum[None], path.reshape(-1, len(optimum))]))
    low = np.quantile(drawn[:, 1:] - drawn[:, :1], 0.5 - level / 2, axis=0)
    return np.asarray(low.reshape(path.shape[:2]) - ROUNDING * np.abs(drawn).max())


def _bracket(places: Floats, fails: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The last of each row's places [domain, 1 + place] before one fails, and the one after it [domain].

    The first place never fails.
    """
    rows, last = np.arange(len(places)), places.shape[1] - 1
    before = np.column_stack([fails, np.ones(len(places), dtype=bool)]).argmax(axis=1)
    return places[rows, before], places[rows, np.minimum(before + 1, last)]
