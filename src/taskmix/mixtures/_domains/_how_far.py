"""How far the prior of a new domain can be trusted: each known domain is taken as new, and awaited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.mixtures._domains._measured import measured_domains
from taskmix.mixtures._domains._new_domain import over_domains, widen
from taskmix.mixtures._domains._worth import fit_worths
from taskmix.mixtures._domains._worth_forecast import WorthForecast
from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._table import MixtureTable

FEWEST = 2  # runs without a domain, for each of the others, that a law of these is learned from


@dataclass(frozen=True, kw_only=True)
class LeftOutDomain:
    """A domain that was taken as new; errors are in spreads of each metric.

    >>> left = LeftOutDomain(
    ...     domain="web", learned_from=80, predicted=20, covered=0.9, covered_own=0.95,
    ...     error=0.3, blind_error=0.6, width=0.7,
    ... )
    >>> left.error / left.blind_error
    0.5
    """

    domain: str
    learned_from: int  # runs without it
    predicted: int  # runs with it
    covered: float  # the part of their metrics that lies in its interval
    covered_own: float  # the same for the metric that measures this domain; NaN where none does
    error: float  # root mean square
    blind_error: float  # of a forecast that takes it for a domain like the mean of the others
    width: float  # half of an interval, in the mean


@dataclass(frozen=True, kw_only=True)
class HowFar:
    """What leaving domains out said; made by `how_far`.

    >>> HowFar(level=0.9, domains=(), left=("web",)).describe()
    ('No domain could be left out: every one is in too many runs to learn a law of the others.',)
    """

    level: float
    domains: tuple[LeftOutDomain, ...]
    left: tuple[str, ...]  # domains that too many runs had

    @property
    def covered(self) -> float:
        """The part of all metrics of runs with a left-out domain that lies in its interval."""
        return float(np.average([each.covered for each in self.domains], weights=self._weights))

    @property
    def error(self) -> float:
        """Root mean square over the domains."""
        return float(np.sqrt(np.mean([each.error**2 for each in self.domains])))

    @property
    def blind_error(self) -> float:
        """The same for a forecast that takes a new domain for a mean one."""
        return float(np.sqrt(np.mean([each.blind_error**2 for each in self.domains])))

    @property
    def _weights(self) -> list[int]:
        return [each.predicted for each in self.domains]

    def describe(self) -> tuple[str, ...]:
        """In sentences."""
        if not self.domains:
            return (
                "No domain could be left out: every one is in too many runs to learn a law of the "
                "others.",
            )
        said = [
            f"Each of {len(self.domains)} domains was taken as new. Of the metrics of runs that had it, "
            f"{100 * self.covered:.0f} % lie in their {100 * self.level:.0f} % intervals; the error is "
            f"{self.error:.2f} of a metric's spread, and {self.blind_error:.2f} if a new domain is "
            "taken for a mean one."
        ]
        worst = min(self.domains, key=lambda each: each.covered)
        if worst.covered < self.level - 0.05:
            said.append(f"Least for {worst.domain!r}: {100 * worst.covered:.0f} %.")
        if self.left:
            said.append(
                f"Not left out, since nearly every run had them: {', '.join(map(repr, self.left))}."
            )
        return tuple(said)


def how_far(
    table: MixtureTable,
    features: DomainFeatures | None = None,
    *,
    fit: Callable[[MixtureTable], Forecast] | None = None,
    measured: Mapping[str, str] | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> HowFar:
    """Leaves out each domain with all runs that had it, and predicts these as if it were new.

    `fit` makes the forecast from the runs without it; None is the law of effective data, which takes
    less than a second. A domain that too many runs had cannot be left out.

    >>> random = np.random.default_rng(0)
    >>> shares = random.dirichlet(np.full(4, 0.3), 80).round(1)
    >>> shares = shares / shares.sum(axis=1, keepdims=True)
    >>> table = MixtureTable(
    ...     domains=("a", "b", "c", "d"), metrics=("loss",), runs=tuple(map(str, range(80))),
    ...     shares=shares, values=3 - np.log(0.1 + shares @ np.array([[1.0], [0.7], [0.5], [0.4]])),
    ... )
    >>> report = how_far(table)
    >>> len(report.domains), report.covered > 0.8
    (4, True)
    """
    if len(table.domains) < 3:
        raise InputError(
            "A table should have at least three domains, to leave one out and learn from the others. "
            f"Found {len(table.domains)}."
        )
    rows, left = [], []
    for name in table.domains:
        has = table.shares[:, table.domains.index(name)] > 0
        if not has.any():
            continue
        if (~has).sum() < FEWEST * len(table.domains):
            left.append(name)
        else:
            rows.append(_leave_out(table, name, features, fit, measured, level, seed))
    return HowFar(level=level, domains=tuple(rows), left=tuple(left))


def _leave_out(
    table: MixtureTable,
    name: str,
    features: DomainFeatures | None,
    fit: Callable[[MixtureTable], Forecast] | None,
    measured: Mapping[str, str] | None,
    level: float,
    seed: int,
) -> LeftOutDomain:
    has = table.shares[:, table.domains.index(name)] > 0
    others = tuple(each for each in table.domains if each != name)
    known = over_domains(table.only(~has), others)
    measures = measured_domains(table.metrics, table.domains, measured)
    worths = fit_worths(known, measures)
    forecast = WorthForecast(known, worths) if fit is None else fit(known)
    wider = widen(forecast, features, (name,), measured, seed, worths)
    runs = over_domains(table.only(has), wider.table.domains)
    low, high = wider.interval(runs.shares, level)
    inside = (runs.values >= low) & (runs.values <= high)
    found = np.isfinite(runs.values)
    own = np.array([each == name for each in measures])
    spread = np.nanstd(table.values, axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    usual = known.shares.mean(axis=0)
    share = runs.shares[:, -1:]
    blind = forecast.predict(runs.shares[:, :-1] + share * usual)

    def error(predicted: np.ndarray) -> float:
        return float(np.sqrt(np.nanmean(((predicted - runs.values) / spread) ** 2)))

    return LeftOutDomain(
        domain=name,
        learned_from=len(known),
        predicted=len(runs),
        covered=float(inside[found].mean()),
        covered_own=float(inside[:, own][found[:, own]].mean()) if found[:, own].any() else np.nan,
        error=error(wider.predict(runs.shares)),
        blind_error=error(blind),
        width=float(((high - low) / 2 / spread).mean()),
    )
