"""What a metric can be at all: no axis goes beyond it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taskmix.errors import OptionError

_CORRELATIONS = ("matthews", "pearson", "spearman")  # from -1 to 1


@dataclass(frozen=True)
class Bounds:
    """The least and the largest value.

    Drawn values are held inside; then no axis passes them, as the ends that Vega rounds to are
    multiples of what divides 1.
    """

    low: float = -math.inf
    high: float = math.inf

    def held(self, value: float) -> float:
        """The value, or the end that it lies beyond; NaN stays."""
        return value if math.isnan(value) else min(max(value, self.low), self.high)

    @property
    def of_differences(self) -> Bounds:
        """Of a difference of two such values."""
        reach = self.high - self.low
        return Bounds(-reach, reach)


def metric_bounds(metric: str) -> Bounds:
    """Of a metric by its name; without an end where it has none or is not known."""
    from taskmix.tasks import find_metric

    if metric == "loss":
        return Bounds(low=0.0)
    try:
        higher = find_metric(metric).higher_is_better
    except OptionError:  # a metric of another version, or several at once
        return Bounds()
    if not higher:
        return Bounds(low=0.0)
    return Bounds(-1.0 if any(name in metric for name in _CORRELATIONS) else 0.0, 1.0)
