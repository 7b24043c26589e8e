r"""Which few runs of the large size would settle the order of the best mixtures.

The laws of `forecast_at_size` are equally likely, and each has its own best mixture: these are the
contenders. The runs are those that tell most about the differences between them, which can be said
before anything is trained.

With the correlation $\rho$ between large runs and the small size's forecast, $n$ large runs and $k$
small ones tell as much as $1 / ((1 - \rho^2)/n + \rho^2/k)$ large runs alone:

    Lavenberg and Welch, "A perspective on the use of control variables", Management Science 1981.

A run on mixture $w$ with noise $s^2$ changes the covariance $\Sigma$ of the target over mixtures to
$\Sigma - \Sigma_w \Sigma_w^T / (\Sigma_{ww} + s^2)$, whatever comes out. Each run is the one that
leaves the least weighted variance $\sum_i p_i \mathrm{Var}(t_i - \bar t)$ of the contenders around
their own mean: a level that all share moves no rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._optimum._search import candidate_mixtures, optima_of_draws
from taskmix.mixtures._optimum._target import JudgedMixtures, MixtureTarget
from taskmix.mixtures._scales._at_size import SizeForecast, forecast_at_size
from taskmix.mixtures._scales._pairs import size_in_words
from taskmix.mixtures._scales._ranks import FEWEST
from taskmix.mixtures._table import Floats, MixtureTable

LAWS = 128
SAME_MIXTURE = 0.05  # half the sum of changes of shares, below which two contenders are one
UNKNOWN_LEVEL = 100.0  # times the largest variance, for a size without runs
SETTLED = 0.1  # of the variance of differences: what is left then moves few ranks


@dataclass(frozen=True, kw_only=True)
class LargeRun:
    """One run worth its cost."""

    shares: Mapping[str, float]
    left: float  # of the variance of differences between contenders, after it and those before it
    reason: str


@dataclass(frozen=True, kw_only=True)
class SettlingRuns:
    """Runs of the large size, most useful first."""

    size: float
    runs: tuple[LargeRun, ...]
    correlation: float  # of the target at the large size with the forecast of the other sizes
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
        how = "measured" if self.measured else "expected, with too few large runs to measure it"
        text = (
            f"At {size_in_words(self.size)} the forecast of the small runs leaves "
            f"{self.variance_left:.0%} of the target's variance (correlation {self.correlation:.2f}, "
            f"{how})"
        )
        if self.large and self.small:
            text += f": {self.large} large runs with them tell as much as {self.worth:.0f} alone"
        enough = [number for number, run in enumerate(self.runs, 1) if run.left <= SETTLED]
        if enough:
            text += f". {enough[0]} more would settle the order of the best mixtures"
        elif self.runs:
            text += (
                f". {len(self.runs)} more leave {self.runs[-1].left:.0%} of what is unknown about the "
                "order of the best mixtures"
            )
        return text + "."


def choose_large_runs(
    table: MixtureTable,
    size: float,
    target: MixtureTarget | None = None,
    limits: MixtureLimits | None = None,
    *,
    count: int = 4,
    forecast: SizeForecast | None = None,  # of this table at this size; fitted where None
    seed: int = 0,
) -> SettlingRuns:
    """The runs at `size` that tell most about the order of the mixtures that may be the best.

    >>> shares = np.array([[x, 1 - x] for x in np.linspace(0, 1, 12)])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("a", "b"), runs=tuple(map(str, range(12))),
    ...     shares=shares, values=-np.sqrt(shares), sizes=np.full(12, 1e6),
    ... )
    >>> choose_large_runs(table, 6e7, count=2).runs[0].reason
    'sets the level at 60 M, where there is no run yet'
    """
    if count < 1:
        raise InputError(f"`count` should be 1 or more runs. Found {count}.")
    if forecast is None:
        forecast = forecast_at_size(table, size, draws=LAWS, seed=seed)
    target, limits = target or MixtureTarget(), limits or MixtureLimits()
    judged = JudgedMixtures(forecast=forecast, target=target, limits=limits)
    feasible = limits.feasible(table.domains)
    options = candidate_mixtures(feasible, table.shares, np.random.default_rng(seed))
    optima, _ = optima_of_draws(judged, feasible, options)
    contenders, chances = _distinct(optima)
    options = np.concatenate([contenders, options])
    drawn = judged.each(options)  # [draw, option]
    large = 0 if table.sizes is None else int((table.sizes == size).sum())
    order, left = choose_runs(
        drawn,
        drawn[:, : len(contenders)],
        chances,
        _noise_of_target(judged, options, seed),
        count,
        level=0.0 if large else UNKNOWN_LEVEL * float(drawn.var(axis=0).max()),
    )
    reasons = [
        _reason(size, first=not large and not number, chance=chance)
        for number, place in enumerate(order)
        for chance in [float(chances[place]) if place < len(chances) else 0.0]
    ]
    correlation, measured = _correlation(table, forecast, target, seed)
    return SettlingRuns(
        size=size,
        runs=tuple(
            LargeRun(
                shares=dict(zip(table.domains, options[place].tolist(), strict=True)),
                left=remaining,
                reason=reason,
            )
            for place, remaining, reason in zip(order, left, reasons, strict=True)
        ),
        correlation=correlation,
        measured=measured,
        small=len(table) - large,
        large=large,
    )


def _distinct(optima: Floats) -> tuple[Floats, Floats]:
    """Mixtures [contender, domain] that laws put first, and by what share of them."""
    kept: list[int] = []
    counts: list[int] = []
    for place, row in enumerate(optima):
        near = np.abs(optima[kept] - row).sum(axis=1) / 2
        if len(kept) and near.min() < SAME_MIXTURE:
            counts[int(near.argmin())] += 1
        else:
            kept.append(place)
            counts.append(1)
    return optima[kept], np.array(counts) / len(optima)


def _noise_of_target(judged: JudgedMixtures, shares: Floats, seed: int) -> Floats:
    """[mixture], variance of the target of a run around its law."""
    taught = judged.taught(shares)
    middle, spread = judged.forecast.predict(taught), judged.forecast.noise(taught)
    noisy = middle + spread * np.random.default_rng(seed).standard_normal((64, *middle.shape))
    return np.asarray(judged.target.of(noisy, judged.forecast.table).var(axis=0))


def _reason(size: float, *, first: bool, chance: float) -> str:
    if first:
        return f"sets the level at {size_in_words(size)}, where there is no run yet"
    if chance > 0:
        return f"the best mixture by {chance:.0%} of the equally likely laws"
    return "not the best by any law, but where they differ most on what the large size does"


def _correlation(
    table: MixtureTable, forecast: SizeForecast, target: MixtureTarget, seed: int
) -> tuple[float, bool]:
    """Of the target at the large size with the forecast of the others, and whether it was measured."""
    assert table.sizes is not None
    here, others = (
        table.only(table.sizes == forecast.size),
        table.only(table.sizes != forecast.size),
    )
    if not len(others):
        return 0.0, False
    known = ~np.isnan(target.of(here.values, table))
    if known.sum() >= FEWEST:
        small = forecast.base
        if forecast.base_size == forecast.size:
            small = forecast_at_size(others, forecast.size, seed=seed)
        found = target.of(here.values[known], table)
        foretold = target.of(small.predict(here.shares[known]), table)
        if found.std() > 0 and foretold.std() > 0:
            return float(np.corrcoef(found, foretold)[0, 1]), True
    every = forecast.table.shares
    large = target.of(forecast.draws(every), table)
    foretold = target.of(forecast.base.draws(every), table)
    with np.errstate(
        invalid="ignore"
    ):  # a law that is flat in the target tells nothing: NaN, then 0
        each = [np.corrcoef(one, two)[0, 1] for one, two in zip(large, foretold, strict=True)]
    return float(np.nan_to_num(np.mean(each))), False


def choose_runs(
    options: Floats,  # [draw, option], the target of mixtures that may be run
    contenders: Floats,  # [draw, contender], of those whose order matters
    chances: Floats,  # [contender], sum to 1
    noise: Floats,  # [option], variance of a run
    count: int,
    *,
    level: float = 0.0,  # variance of a level that all share and no run has told yet
) -> tuple[list[int], list[float]]:
    """Places of the options, and after each the part of the variance of differences that is left."""
    options, contenders = options - options.mean(axis=0), contenders - contenders.mean(axis=0)
    if level:
        # One more direction in which nothing is known: a draw's worth of a constant.
        common = np.sqrt(level * len(options))
        options = np.vstack([options, np.full((1, options.shape[1]), common)])
        contenders = np.vstack([contenders, np.full((1, contenders.shape[1]), common)])
    apart = (contenders - (contenders @ chances)[:, None]) * np.sqrt(chances)
    draws = len(options)
    start = remaining = float((apart**2).sum() / draws)
    order: list[int] = []
    left: list[float] = []
    for _ in range(min(count, options.shape[1])):
        scale = (options**2).mean(axis=0) + noise
        gains = ((options.T @ apart / draws) ** 2).sum(axis=1) / np.maximum(scale, 1e-300)
        gains[order] = -1.0  # a repeat tells of noise, not of another mixture
        best = int(np.argmax(gains))
        seen = options[:, best].copy()
        # Conditioning on the run moves every draw; the noise of the run stays in what is left.
        pull = seen / max(float(scale[best]), 1e-300)
        keep = _square_root_factor(float((seen**2).mean()), float(noise[best]))
        options = options - keep * np.outer(seen, pull @ options / draws)
        apart = apart - keep * np.outer(seen, pull @ apart / draws)
        remaining = float((apart**2).sum() / draws)
        order.append(best)
        left.append(min(remaining / start, 1.0) if start > 0 else 0.0)
    return order, left


def _square_root_factor(variance: float, noise: float) -> float:
    """How far draws are moved so that their covariance is the one after the run.

    Moving each by all of the regression would leave no noise in it: the square-root filter of Andrews
    (1968).
    """
    return 1.0 / (1.0 + np.sqrt(noise / (variance + noise))) if variance + noise > 0 else 0.0
