"""What a mixture is to be good at: one metric, a weighted mean of several, or the worst of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._forecast import Forecast
from taskmix.mixtures._optimum._descent import Judge
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._table import Floats, MixtureTable, few_names
from taskmix.numerics import Interval

AT_ONCE = 4_000_000  # numbers [draw, mixture, metric] that are held at a time


@dataclass(frozen=True, kw_only=True)
class MixtureTarget:
    """A number made of a run's metrics, lower always being better.

    Without options it is the mean of all metrics. `metric` names one, `weights` makes a weighted mean
    (they are divided by their sum), `worst` takes the largest of the metrics that have a weight.
    With `reference`, the values that some mixture gave, metrics count as a change relative to it:
    0.02 is 2 % worse, so that metrics of different levels compare.

    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("loss", "accuracy"), runs=("a",),
    ...     shares=np.array([[0.5, 0.5]]), values=np.array([[3.0, 0.4]]),
    ...     larger_is_better=("accuracy",),
    ... )
    >>> MixtureTarget(metric="accuracy").of(table.values, table).tolist()
    [-0.4]
    >>> target = MixtureTarget(worst=True, reference={"loss": 2.0, "accuracy": 0.5})
    >>> target.of(table.values, table).tolist()  # the loss is 50 % worse, the accuracy 20 %
    [0.5]
    """

    metric: str | None = None
    weights: Mapping[str, float] | None = None  # None: the same for all
    worst: bool = False
    reference: Mapping[str, float] | None = None  # by metric; None: values count as they are

    def __post_init__(self) -> None:
        if self.metric is not None and (self.weights is not None or self.worst):
            raise InputError(
                "A target should be one metric, a weighted mean or the worst metric. Found `metric` "
                f"`{self.metric}` beside `weights` or `worst`. Leave one of them out.",
                arguments=("metric", "weights", "worst"),
            )
        weights = self.weights or {}
        for name, weight in weights.items():
            if not math.isfinite(weight) or weight < 0:
                raise InputError(
                    f"The weight of a metric should be a number of at least 0. Found {weight} for "
                    f"`{name}`. A metric that should rise is named as such in the table, not here."
                )
        if self.weights is not None and not any(weight > 0 for weight in weights.values()):
            raise InputError(
                "At least one metric should have a weight above 0. Found none. Leave `weights` out "
                "for the mean of all metrics.",
                arguments=("weights",),
            )

    def of(self, values: Floats, table: MixtureTable) -> Floats:
        """`values` [..., metric] as the target [...]; NaN where a metric that it needs is."""
        parts = self.parts(values, table)
        if self.worst:
            return np.asarray(parts.max(axis=-1))
        weights = self.weights_in(table)
        return np.asarray(parts @ weights[weights > 0])

    def parts(self, values: Floats, table: MixtureTable) -> Floats:
        """The metrics that it is made of [..., part], each lower where it is better."""
        used = np.flatnonzero(self.weights_in(table))
        signs = table.signs[used]
        if self.reference is None:
            return np.asarray(values[..., used] * signs)
        level = self._levels_in(table)[used]
        return np.asarray((values[..., used] - level) * signs / np.abs(level))

    def weights_in(self, table: MixtureTable) -> Floats:
        """[metric], the weights in the order of the table; they sum to 1."""
        if self.metric is not None:
            wanted: Mapping[str, float] = {self.metric: 1.0}
        else:
            wanted = self.weights or dict.fromkeys(table.metrics, 1.0)
        unknown = [name for name in wanted if name not in table.metrics]
        if unknown:
            raise InputError(
                f"The target's metrics should be metrics of the table. Found `{unknown[0]}`; the "
                f"table has {few_names(table.metrics)}."
            )
        weights = np.array([wanted.get(name, 0.0) for name in table.metrics], dtype=np.float64)
        return np.asarray(weights / weights.sum())

    def check(self, table: MixtureTable) -> None:
        """Refuses what the table does not have, before work begins."""
        self.weights_in(table)
        if self.reference is not None:
            self._levels_in(table)

    def describe(self, table: MixtureTable) -> str:
        """In words, as in "the mean of 13 metrics"."""
        used = [
            name
            for name, weight in zip(table.metrics, self.weights_in(table), strict=True)
            if weight
        ]
        relative = ", relative to the reference" if self.reference is not None else ""
        if len(used) == 1:
            return f"{used[0]}{relative}"
        if self.worst:
            return f"the worst of {len(used)} metrics{relative}"
        weighted = "weighted " if self.weights is not None else ""
        return f"the {weighted}mean of {len(used)} metrics{relative}"

    def _levels_in(self, table: MixtureTable) -> Floats:
        """[metric], the reference; 1 where the target does not ask for the metric."""
        assert self.reference is not None
        levels = np.ones(len(table.metrics))
        for place in np.flatnonzero(self.weights_in(table)):
            name = table.metrics[place]
            level = self.reference.get(name, math.nan)
            if not math.isfinite(level) or level == 0:
                found = f"{level}" if name in self.reference else "none"
                raise InputError(
                    "`reference` should have a value other than 0 for each metric of the target, as "
                    f"changes are relative to it. Found {found} for `{name}`.",
                    arguments=("reference",),
                )
            levels[place] = level
        return levels


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedMixtures:
    """Mixtures as numbers to be made small.

    Draws are shifted so that their mean is the forecast's prediction. Their own mean misses it by
    chance, differently for every mixture, and a search would find those mixtures where chance is kind.
    """

    forecast: Forecast
    target: MixtureTarget
    limits: MixtureLimits

    def __post_init__(self) -> None:
        self.target.check(self.forecast.table)

    def taught(self, shares: Floats) -> Floats:
        """What the forecast is asked: shares as what they teach, repeated tokens counting less."""
        return self.limits.effective(shares, self.forecast.table.domains)

    def metrics(self, shares: Floats) -> Floats:
        """[mixture, metric], expected, in the order and with the signs of the table."""
        return self.forecast.predict(self.taught(shares))

    def each(self, shares: Floats) -> Floats:
        """[draw, mixture], the target by each of the equally likely laws."""
        table = self.forecast.table
        taught = self.taught(shares)
        middle = self.forecast.predict(taught)
        parts, start, step = [], 0, len(taught)
        while start < len(taught):
            drawn = self.forecast.draws(taught[start : start + step])
            drawn = drawn - drawn.mean(axis=0) + middle[start : start + step]
            parts.append(self.target.of(drawn, table))
            start += step
            step = max(1, AT_ONCE // (drawn.shape[0] * drawn.shape[2]))
        return np.concatenate(parts, axis=1)

    def guess(self, shares: Floats) -> Floats:
        """[mixture], the target of what is predicted: nearly its mean, at the cost of one law."""
        return self.target.of(self.metrics(shares), self.forecast.table)

    @property
    def range_of_runs(self) -> float:
        """How far the targets of the runs lie apart; infinite where they are not known."""
        seen = self._seen()
        return float(np.ptp(seen)) if len(seen) else float("inf")

    @property
    def spread_of_runs(self) -> float:
        """The same as a standard deviation; 0 where they are not known."""
        seen = self._seen()
        return float(seen.std()) if len(seen) else 0.0

    def _seen(self) -> Floats:
        """The targets of the runs, where they are known."""
        seen = self.target.of(self.forecast.table.values, self.forecast.table)
        return np.asarray(seen[np.isfinite(seen)])

    @property
    def edges(self) -> Judge | None:
        """For the worst of several metrics these [mixture, part], expected; None for a mean."""
        table = self.forecast.table
        if not self.target.worst:
            return None
        return lambda shares: self.target.parts(self.metrics(shares), table)

    def expected(self, shares: Floats) -> Floats:
        """[mixture], the target's mean over the laws."""
        if not self.target.worst:
            return self.guess(shares)
        return np.asarray(self.each(shares).mean(axis=0))


def interval_of(draws: Floats, level: float) -> Interval:
    """The mean of draws [draw], and between which values a share `level` of them lies."""
    low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(draws.mean()), float(low), float(high), len(draws), level)
