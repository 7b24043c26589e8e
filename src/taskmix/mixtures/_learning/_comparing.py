"""The advised mixture beside others: what is expected of each, in the target and in every metric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taskmix.mixtures._learning._document import ComparedMixture, ForecastValue, PredictedMixture
from taskmix.mixtures._learning._left_out import LEVEL
from taskmix.mixtures._optimum import JudgedMixtures, MixtureOptimum, MixtureTarget
from taskmix.mixtures._table import Floats, MixtureTable
from taskmix.numerics import Interval

ADVISED, BEST_RUN = "advised", "the best run"
_NAMES = {"uniform": "equal shares", "natural": "natural shares", "the reference": "given shares"}


def compare_mixtures(
    judged: JudgedMixtures, optimum: MixtureOptimum
) -> tuple[ComparedMixture, ...]:
    """The advised mixture, then those that it was compared with."""
    table = judged.forecast.table
    shares = [optimum.row(table.domains)]
    shares += [np.array(list(other.shares.values())) for other in optimum.gains.values()]
    metrics = metrics_of(judged, np.stack(shares))
    nothing = ForecastValue(0.0, 0.0, 0.0)
    turned = rises(judged.target, table)
    rows = [
        ComparedMixture(
            name=ADVISED,
            shares=dict(optimum.shares),
            target=value_of(optimum.target, turned=turned),
            gain=nothing,
            better=0.5,
            metrics=metrics[0],
        )
    ]
    for place, (name, other) in enumerate(optimum.gains.items(), start=1):
        is_run = name == BEST_RUN
        rows.append(
            ComparedMixture(
                name=f"best run ({optimum.best_run})" if is_run else _NAMES.get(name, name),
                shares=dict(other.shares),
                target=value_of(other.target, turned=turned),
                gain=value_of(other.gain),
                better=other.better,
                metrics=metrics[place],
            )
        )
    return tuple(rows)


def predict_named(
    judged: JudgedMixtures, names: Sequence[str], shares: Floats
) -> tuple[PredictedMixture, ...]:
    """What mixtures that someone asks about will give."""
    table, metrics = judged.forecast.table, metrics_of(judged, shares)
    targets = judged.each(shares) * (-1.0 if rises(judged.target, table) else 1.0)
    return tuple(
        PredictedMixture(
            name=name,
            shares=named_shares(table.domains, shares[place]),
            target=middle_of(targets[:, place]),
            metrics=metrics[place],
        )
        for place, name in enumerate(names)
    )


def metrics_of(judged: JudgedMixtures, shares: Floats) -> list[dict[str, ForecastValue]]:
    """For each mixture, what a run on it will give."""
    middle = judged.metrics(shares)
    low, high = judged.forecast.interval(judged.taught(shares), LEVEL)
    return [
        {
            name: ForecastValue(*(float(each[row, place]) for each in (middle, low, high)))
            for place, name in enumerate(judged.forecast.table.metrics)
        }
        for row in range(len(shares))
    ]


def middle_of(draws: Floats) -> ForecastValue:
    """The mean of draws [draw] and their middle part."""
    low, high = np.quantile(draws, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
    return ForecastValue(float(draws.mean()), float(low), float(high))


def rises(target: MixtureTarget, table: MixtureTable) -> bool:
    """Whether the target is one metric that should rise: then people want to see it rise."""
    used = np.flatnonzero(target.weights_in(table))
    return len(used) == 1 and bool(table.signs[used[0]] < 0) and target.reference is None


def value_of(interval: Interval, *, turned: bool = False) -> ForecastValue:
    """An interval as the document has it; `turned`, a target as the metric that it is."""
    if turned:
        return ForecastValue(-interval.mean, -interval.high, -interval.low)
    return ForecastValue(interval.mean, interval.low, interval.high)


def named_shares(domains: Sequence[str], shares: Floats) -> dict[str, float]:
    """A row of shares by domain."""
    return {name: float(share) for name, share in zip(domains, shares, strict=True)}
