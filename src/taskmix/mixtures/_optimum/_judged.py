"""The target of mixtures by a forecast: expected, and for each of its equally likely laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from taskmix.errors import OptionError
from taskmix.mixtures._forecasting import Forecast
from taskmix.mixtures._optimum._finishing import Judge
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._target import MixtureTarget
from taskmix.mixtures._table import Floats
from taskmix.numerics import Interval

AT_ONCE = 4_000_000  # numbers [draw, mixture, metric] that are held at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedMixtures:
    """Mixtures as numbers to be made small.

    Draws are shifted so that their mean is the forecast's prediction. Their own mean misses it by
    chance, differently for every mixture, and a search would find those mixtures where chance is kind.
    """

    forecast: Forecast
    target: MixtureTarget
    limits: MixtureLimits
    caution: float | None = (
        None  # None: the mean over draws is made small; 0.9: what 90 % keep under
    )

    def __post_init__(self) -> None:
        if self.caution is not None and not 0 < self.caution < 1:
            raise OptionError(
                "`caution` should be a share of the forecast's laws between 0 and 1, such as 0.8. "
                f"Found {self.caution}."
            )

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

    def value(self, shares: Floats) -> Floats:
        """[mixture], what the search makes small."""
        if self.caution is not None:
            return smooth_quantile(self.each(shares), self.caution)
        return self.expected(shares)

    @property
    def edges(self) -> Judge | None:
        """For the worst of several metrics these [mixture, part], expected; None for a mean."""
        table = self.forecast.table
        if not self.target.worst:
            return None
        return lambda shares: self.target.parts(self.metrics(shares), table)

    def expected(self, shares: Floats) -> Floats:
        """[mixture], the target's mean over the laws."""
        if not self.target.worst:  # the mean of a mean is that of the prediction
            return self.target.of(self.metrics(shares), self.forecast.table)
        return np.asarray(self.each(shares).mean(axis=0))


def smooth_quantile(draws: Floats, share: float) -> Floats:
    """The quantile of Harrell and Davis (1982) of draws [draw, mixture]: a mean of all, most of it near.

    It varies less than one of the draws does, and has no edges where draws change places, on which a
    search would stop.
    """
    count = len(draws)
    below = betainc((count + 1) * share, (count + 1) * (1 - share), np.arange(count + 1) / count)
    return np.asarray(np.diff(below) @ np.sort(draws, axis=0))


def interval_of(draws: Floats, level: float) -> Interval:
    """The mean of draws [draw], and between which values a share `level` of them lies."""
    low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(draws.mean()), float(low), float(high), len(draws), level)
