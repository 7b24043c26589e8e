r"""Which few runs of the large size would settle the order of the best mixtures.

The laws of `forecast_at_size` are equally likely. What matters is by how much they disagree on the
differences between the contenders, mixtures that may be the best. A run on mixture $w$ with noise $s^2$
changes the covariance $\Sigma$ of the target over mixtures to $\Sigma - \Sigma_w \Sigma_w^T /
(\Sigma_{ww} + s^2)$; runs are taken one after the other, each the one that leaves the least variance of
differences. Values are not needed for this, so it can be said before anything is trained.

With the correlation $\rho$ between large runs and the small size's forecast, $n$ large runs and $k$
small ones tell as much as $1 / ((1 - \rho^2)/n + \rho^2/k)$ large runs alone (control variates:
Lavenberg and Welch, 1981).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.mixtures._scales._at_size import SizeForecast, forecast_at_size
from taskmix.mixtures._scales._pairs import Target, group_mixtures, size_in_words
from taskmix.mixtures._scales._ranks import FEWEST
from taskmix.mixtures._table import Floats, MixtureTable

CONTENDERS = 40  # at most; the order of more is not what a few runs settle
UNKNOWN_LEVEL = 100.0  # times the largest variance, for a size without runs
SETTLED = 0.1  # of the variance of differences: what is left then moves few ranks


@dataclass(frozen=True, kw_only=True)
class LargeRun:
    """One run worth its cost.

    >>> run = LargeRun(shares={"web": 0.7, "code": 0.3}, left=0.4, reason="first in 20 % of the laws")
    >>> run.shares["web"]
    0.7
    """

    shares: Mapping[str, float]
    left: float  # of the variance of differences between contenders, after it and those before it
    reason: str


@dataclass(frozen=True, kw_only=True)
class Settling:
    """Runs of the large size, most useful first.

    >>> Settling(size=6e7, runs=(), correlation=0.9, measured=True, small=512, large=8).worth
    39.5
    """

    size: float
    runs: tuple[LargeRun, ...]
    correlation: float  # of the target at the large size with the small size's forecast
    measured: bool  # on large runs; otherwise what the equally likely laws expect
    small: int  # runs of other sizes
    large: int  # runs of this size, those above not counted

    @property
    def variance_left(self) -> float:
        """Of the target between large runs, once the small forecast is known."""
        return 1.0 - self.correlation**2

    @property
    def worth(self) -> float:
        """How many large runs alone would tell as much as those there are with the small ones."""
        if not self.large or not self.small:
            return float(self.large)
        inverse = self.variance_left / self.large + self.correlation**2 / self.small
        return round(1.0 / inverse, 1)

    @property
    def words(self) -> str:
        """A sentence or two for the page."""
        size = size_in_words(self.size)
        how = (
            "measured"
            if self.measured
            else "expected, as too few large runs are there to measure it"
        )
        text = (
            f"At {size} the small size's forecast leaves {self.variance_left:.0%} of the target's "
            "variance "
            f"(correlation {self.correlation:.2f}, {how})"
        )
        if self.large and self.small:
            text += (
                f": {self.large} runs with the small ones tell as much as {self.worth:.0f} alone"
            )
        enough = [number for number, run in enumerate(self.runs, 1) if run.left <= SETTLED]
        if enough:
            text += f". {enough[0]} more would settle the order of the best mixtures"
        elif self.runs:
            text += (
                f". {len(self.runs)} more leave {self.runs[-1].left:.0%} of what is unknown about the "
                "order of "
                "the best mixtures"
            )
        return text + "."


def settle_with(
    table: MixtureTable,
    size: float,
    target: Target,
    *,
    count: int = 4,
    candidates: Floats | None = None,  # [mixture, domain]; the mixtures of the table
    seed: int = 0,
) -> Settling:
    """The runs at `size` that tell most about the order of the mixtures that may be the best.

    >>> class Mean:
    ...     def of(self, values): return values.mean(axis=-1)
    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0, 1, 12)])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("a",), runs=tuple(map(str, range(12))),
    ...     shares=shares, values=np.sqrt(shares[:, :1]), sizes=np.full(12, 1e6),
    ... )
    >>> settling = settle_with(table, 6e7, Mean(), count=2)
    >>> [run.reason for run in settling.runs][0]
    'sets the level at 60 M, where there is no run yet'
    """
    if count < 1:
        raise InputError(f"`count` should be 1 or more runs. Found {count}.")
    forecast = forecast_at_size(table, size, draws=128, seed=seed)
    options = (
        group_mixtures(table.shares, table.values).shares if candidates is None else candidates
    )
    drawn = target.of(forecast.draws(options))  # [draw, mixture]
    firsts = np.bincount(drawn.argmin(axis=1), minlength=len(options)) / len(drawn)
    contenders = _contenders(drawn, firsts)
    noise = _noise_of_target(forecast, options, target, seed)
    large = int((table.sizes == size).sum()) if table.sizes is not None else 0
    covariance = np.cov(drawn, rowvar=False).reshape(len(options), len(options))
    if not large:
        covariance = covariance + UNKNOWN_LEVEL * max(float(covariance.diagonal().max()), 1e-12)
    order, left = _greedy(covariance, noise, contenders, min(count, len(options)))
    is_contender = np.isin(np.arange(len(options)), contenders)
    runs = tuple(
        LargeRun(
            shares=dict(zip(table.domains, options[place].tolist(), strict=True)),
            left=remaining,
            reason=_reason(number, large, size, float(firsts[place]), bool(is_contender[place])),
        )
        for number, (place, remaining) in enumerate(zip(order, left, strict=True))
    )
    correlation, measured = _correlation(table, forecast, target, options[contenders])
    return Settling(
        size=size,
        runs=runs,
        correlation=correlation,
        measured=measured,
        small=len(table) - large,
        large=large,
    )


def _contenders(drawn: Floats, firsts: Floats) -> NDArray[np.intp]:
    """Mixtures that some law puts first, then those expected to be next."""
    order = np.lexsort((drawn.mean(axis=0), -firsts))
    return order[: min(CONTENDERS, max(len(order) // 4, 3))]


def _noise_of_target(forecast: SizeForecast, shares: Floats, target: Target, seed: int) -> Floats:
    """[mixture], variance of the target of a run around its law."""
    middle, spread = forecast.predict(shares), forecast.noise(shares)
    random = np.random.default_rng(seed)
    noisy = middle + spread * random.standard_normal((64, *middle.shape))
    return np.asarray(target.of(noisy).var(axis=0))


def _greedy(
    covariance: Floats, noise: Floats, contenders: NDArray[np.intp], count: int
) -> tuple[list[int], list[float]]:
    """Places of the runs, and what is left of the variance of differences after each."""

    def unsure(columns: Floats) -> Floats:
        """[...], of directions [..., contender]: the part that differs between contenders."""
        return ((columns - columns.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)

    inner = covariance[np.ix_(contenders, contenders)]
    start = float(np.trace(inner) - inner.mean() * len(contenders))
    remaining, order, left = start, [], []
    for _ in range(count):
        scale = covariance.diagonal() + noise
        gains = unsure(covariance[:, contenders]) / np.maximum(scale, 1e-300)
        gains[order] = -1.0  # a repeat of a run tells of noise
        best = int(np.argmax(gains))
        remaining -= float(gains[best])
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / max(float(scale[best]), 1e-300)
        order.append(best)
        left.append(float(np.clip(remaining / start, 0.0, 1.0)) if start > 0 else 0.0)
    return order, left


def _reason(number: int, large: int, size: float, first: float, is_contender: bool) -> str:
    if not large and number == 0:
        return f"sets the level at {size_in_words(size)}, where there is no run yet"
    if first > 0:
        return f"{first:.0%} of the laws put it first"
    if is_contender:
        return "close to the best, and the laws disagree by how much"
    return "far from the best, where it shows how strongly the large size responds"


def _correlation(
    table: MixtureTable, forecast: SizeForecast, target: Target, contenders: Floats
) -> tuple[float, bool]:
    """Of the target at the large size with the base size's forecast."""
    if table.sizes is not None and forecast.size != forecast.base_size:
        here = table.only(table.sizes == forecast.size)
        if len(here) >= FEWEST:
            found, small = target.of(here.values), target.of(forecast.base.predict(here.shares))
            known = ~np.isnan(found)
            if known.sum() >= FEWEST and found[known].std() > 0 and small[known].std() > 0:
                return float(np.corrcoef(found[known], small[known])[0, 1]), True
    every = forecast.table.shares
    large, small = target.of(forecast.draws(every)), target.of(forecast.base.draws(every))
    each = [np.corrcoef(one, two)[0, 1] for one, two in zip(large, small, strict=True)]
    return float(np.nan_to_num(np.mean(each))), False
