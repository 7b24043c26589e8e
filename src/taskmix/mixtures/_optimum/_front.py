"""The Pareto front of two targets: mixtures that cannot be better in one without loss in the other.

The ends are the optima of each target alone. Between them the first target is made small while the
second is kept under a level (the epsilon constraint of Haimes, Lasdon and Wismer, 1971), which also
finds the points where the front is not convex, as no weighted mean does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.errors import OptionError
from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._optimum._descent import descend_together, finish_under
from taskmix.mixtures._optimum._feasible import FeasibleShares
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._optimum import shares_by_name
from taskmix.mixtures._optimum._search import best_mixture, candidate_mixtures
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget, interval_of
from taskmix.mixtures._table import Floats
from taskmix.numerics import Interval, check_level


@dataclass(frozen=True, kw_only=True)
class FrontMixture:
    """One point of the front."""

    shares: Mapping[str, float]
    first: Interval
    second: Interval


def find_front(
    forecast: Forecast,
    first: MixtureTarget,
    second: MixtureTarget,
    limits: MixtureLimits | None = None,
    *,
    points: int = 15,
    seed: int = 0,
    level: float = 0.9,
) -> tuple[FrontMixture, ...]:
    """Mixtures of the front, from the best for `first` to the best for `second`.

    At most `points` of them; points that another one beats in both targets are left out.

    >>> from taskmix.mixtures import MixtureTable, forecast_mixtures
    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0.1, 0.9, 8)])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("text", "bugs"), runs=tuple("abcdefgh"), shares=shares,
    ...     values=-np.sqrt(shares),
    ... )
    >>> text, bugs = MixtureTarget(metric="text"), MixtureTarget(metric="bugs")
    >>> front = find_front(forecast_mixtures(table, laws=()), text, bugs, points=5)
    >>> front[0].shares["web"] > front[-1].shares["web"]
    True
    """
    check_level(level)
    if points < 2:
        raise OptionError(f"`points` of a front should be at least 2. Found {points}.")
    table, limits = forecast.table, limits or MixtureLimits()
    feasible = limits.feasible(table.domains)
    one, two = (
        JudgedMixtures(forecast=forecast, target=target, limits=limits)
        for target in (first, second)
    )
    generator = np.random.default_rng(seed)
    rows = _front_rows(one, two, feasible, table.shares, generator, points)
    by_one, by_two = one.each(rows), two.each(rows)
    return tuple(
        FrontMixture(
            shares=shares_by_name(table.domains, row),
            first=interval_of(by_one[:, place], level),
            second=interval_of(by_two[:, place], level),
        )
        for place, row in enumerate(rows)
    )


def _front_rows(
    first: JudgedMixtures,
    second: JudgedMixtures,
    feasible: FeasibleShares,
    seen: Floats,
    generator: np.random.Generator,
    points: int,
) -> Floats:
    """[point, domain], in the order of the first target."""
    ends = [best_mixture(each, feasible, seen, generator) for each in (first, second)]
    one, two = first.expected, second.expected
    pool = np.concatenate([np.array(ends), candidate_mixtures(feasible, seen, generator)])
    a, b = one(pool), two(pool)
    scales = (float(np.std(a)) or 1.0, float(np.std(b)) or 1.0)
    # Weighted means are easily made small together, and are good starts where the front is convex.
    weights = np.linspace(0.0, 1.0, points)
    means = np.outer(weights, a / scales[0]) + np.outer(1 - weights, b / scales[1])
    starts, _ = descend_together(
        lambda rows, of: (
            weights[of] * one(rows) / scales[0] + (1 - weights[of]) * two(rows) / scales[1]
        ),
        feasible,
        pool[means.argmin(axis=1)],
        steps=15,
    )
    pool = np.concatenate([pool, starts])
    a, b = one(pool), two(pool)
    found = [*ends]
    for level in np.linspace(b[0], b[1], points)[1:-1]:
        kept = np.flatnonzero(b <= level)
        start = pool[kept[a[kept].argmin()]]
        found.append(finish_under(one, two, float(level), feasible, start, scales))
    every = np.concatenate([np.array(found), starts])
    every = every[_not_beaten(one(every), two(every))]
    return every[_evenly(one(every) / scales[0], two(every) / scales[1], points)]


def _not_beaten(a: Floats, b: Floats) -> list[int]:
    """Places of the points that no other one beats in one target without loss in the other."""
    order = np.lexsort((b, a))
    kept: list[int] = []
    lowest = np.inf
    for place in order:
        if b[place] < lowest - 1e-12 * max(abs(float(b[place])), 1e-12):
            kept.append(int(place))
            lowest = float(b[place])
    return kept


def _evenly(a: Floats, b: Floats, points: int) -> list[int]:
    """At most so many places, both ends among them, spread over the length of the front."""
    if len(a) <= points:
        return list(range(len(a)))
    along = np.append(0.0, np.cumsum(np.hypot(np.diff(a), np.diff(b))))
    chosen = [0, len(a) - 1]
    for wanted in np.linspace(0.0, along[-1], points)[1:-1]:
        apart = np.abs(along - wanted)
        apart[chosen] = np.inf
        chosen.append(int(apart.argmin()))
    return sorted(chosen)
