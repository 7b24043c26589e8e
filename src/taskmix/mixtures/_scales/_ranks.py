r"""Rank correlation with an interval, and what it would be without noise.

Noise on either side lowers a correlation. With the reliabilities $R_x$ and $R_y$ (the share of the
variance between mixtures that is no noise) the correlation without noise is $\rho = r / \sqrt{R_x
R_y}$:

    Spearman, "The Proof and Measurement of Association between Two Things", 1904.

The interval is the wider of two: the percentiles of resampled mixtures, and Fisher's with the variance
of a rank correlation, $(1 + r^2/2)/(n - 3)$:

    Bonett and Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", Psychometrika 2000.

Resampling alone says "exactly 1" of five mixtures in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, rankdata

from taskmix.mixtures._table import Floats

FEWEST = 4  # mixtures; Fisher's interval needs more than three
NOISE_DRAWS = 64


@dataclass(frozen=True)
class RankCorrelation:
    """Between two columns, with an interval."""

    value: float
    low: float
    high: float


def _correlate(left: Floats, right: Floats) -> Floats:
    """[...], of ranks [..., mixture]; 0 where one side does not vary."""
    left = left - left.mean(axis=-1, keepdims=True)
    right = right - right.mean(axis=-1, keepdims=True)
    scale = np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
    product = (left * right).sum(axis=-1)
    return np.asarray(np.divide(product, scale, out=np.zeros_like(product), where=scale > 0))


def rank_correlation(left: Floats, right: Floats) -> float:
    """Spearman's, 0 where one side does not vary."""
    return float(_correlate(rankdata(left), rankdata(right)))


def fisher_interval(value: float, mixtures: int, level: float) -> tuple[float, float]:
    """Where the correlation of many more mixtures lies."""
    # Ranks of n mixtures cannot tell a correlation of 1 from one that is half a swap of neighbours away.
    most = 1.0 - 6.0 / (mixtures * (mixtures**2 - 1.0))
    middle = np.arctanh(np.clip(value, -most, most))
    wide = norm.ppf(0.5 + level / 2) * np.sqrt((1 + value**2 / 2) / (mixtures - 3))
    return float(np.tanh(middle - wide)), float(np.tanh(middle + wide))


def correlate_ranks(
    left: Floats,  # [mixture]
    right: Floats,  # [mixture]
    *,
    level: float,
    resamples: int,
    random: np.random.Generator,
) -> RankCorrelation:
    """Spearman's correlation of two columns without gaps."""
    value = rank_correlation(left, right)
    picked = random.integers(len(left), size=(resamples, len(left)))
    drawn = _correlate(rankdata(left[picked], axis=1), rankdata(right[picked], axis=1))
    low, high = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2])
    fisher_low, fisher_high = fisher_interval(value, len(left), level)
    return RankCorrelation(
        value=value,
        low=min(float(low), fisher_low, value),
        high=max(float(high), fisher_high, value),
    )


def rank_reliability(values: Floats, noise: float, *, is_forecast: bool = False) -> float:
    """The part of the ranks' variance that is no noise; NaN where the noise (a variance) is unknown.

    Many mixtures that are nearly equal have ranks of little worth, however far a few others lie: so it
    is by how much as much noise once more would change the ranks. With $q$ the variance of the noise
    over that of the values, that correlation squared is $1/(1 + q)$ and the reliability of measured
    values $1 - q$. A forecast is drawn to the middle by what it does not know, where noise pushes
    values apart: its reliability is $1/(1 + q)$.
    """
    if np.isnan(noise):
        return np.nan
    random = np.random.default_rng(0)
    moved = values + np.sqrt(noise) * random.standard_normal((NOISE_DRAWS, len(values)))
    kept = float(_correlate(rankdata(values)[None], rankdata(moved, axis=1)).mean())
    if kept <= 0:
        return 0.0
    return kept**2 if is_forecast else max(2.0 - kept**-2, 0.0)


def runs_to_tell(value: float, threshold: float, level: float, shrunk_by: float) -> float:
    """How many mixtures it takes until the interval leaves out the threshold.

    `shrunk_by` is the square root of the product of reliabilities: noise makes a correlation without
    noise that much less certain.
    """
    apart = abs(np.arctanh(np.clip(value, -0.995, 0.995)) - np.arctanh(threshold))
    if apart == 0 or shrunk_by <= 0:
        return np.inf
    wide = norm.ppf(0.5 + level / 2) * np.sqrt(1 + value**2 / 2) / shrunk_by
    return float(3 + np.ceil((wide / apart) ** 2))
