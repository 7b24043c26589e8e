r"""Why the mean of many losses carries over worse than every one of them.

A share that helps one domain costs the others. The losses go up and down by a lot, their mean by
little: it is a small difference of large terms. From the small size $u_m$ to the large size $v_m$ (both
centred over mixtures) each loss follows a line of its own, $v_m = \beta_m u_m + e_m$, so that

$$\bar v = \bar\beta\,\bar u + \overline{(\beta_m - \bar\beta)\,u_m} + \bar e .$$

The first term keeps the order of the mean exactly. The second does not: slopes that differ between
losses weigh the large terms anew, and what cancelled at the small size no longer cancels. Against a
single loss a slope is harmless, as it moves no rank. The mean that a large model would rank by is, at
the small size, the mean weighted by the slopes, $\overline{\beta_m u_m}$.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._forecasting import forecast_mixtures
from taskmix.mixtures._optimum import MixtureTarget
from taskmix.mixtures._scales._pairs import (
    group_mixtures,
    match_mixtures,
    pairs_of_sizes,
    size_in_words,
)
from taskmix.mixtures._scales._ranks import FEWEST, rank_correlation
from taskmix.mixtures._table import Floats, MixtureTable


@dataclass(frozen=True, kw_only=True)
class MeanExplained:
    """How the rank correlation of the mean between two sizes comes about.

    >>> explained = MeanExplained(
    ...     small=1e6, large=6e7, mixtures=100, matched=True, spread_of_mean=0.1, mean_of_spreads=0.4,
    ...     slopes={"code": 1.0}, single={"code": 0.99}, observed=0.9, equal_slopes=0.95,
    ...     slopes_alone=0.92, reweighted=0.96,
    ... )
    >>> explained.cancelled
    0.75
    """

    small: float
    large: float
    mixtures: int
    matched: bool  # trained at both sizes; otherwise the small side is a forecast
    spread_of_mean: float  # between mixtures, at the small size
    mean_of_spreads: float  # of the single losses
    slopes: Mapping[str, float]  # by metric, large values against small ones
    single: Mapping[str, float]  # by metric, its rank correlation
    observed: float  # rank correlation of the mean
    equal_slopes: float  # the same with one slope for all losses, and what is left of each
    slopes_alone: float  # with each loss exactly on its line
    reweighted: float  # of the small losses weighted by their slopes with the large mean

    @property
    def cancelled(self) -> float:
        """The part of the losses' spread that is gone in their mean."""
        return 1.0 - self.spread_of_mean / self.mean_of_spreads

    @property
    def words(self) -> str:
        """A paragraph for the page."""
        lowest, highest = min(self.slopes.values()), max(self.slopes.values())
        typical = float(np.median(list(self.single.values())))
        sizes = f"{size_in_words(self.small)} to {size_in_words(self.large)}"
        start = (
            f"From {sizes}, the typical loss keeps its ranks at {typical:.2f}, the mean of all "
            f"{len(self.slopes)} at {self.observed:.2f}. "
        )
        if self.observed >= typical - 0.02:
            return start + "The mean carries over as well as its parts."
        return start + (
            f"Mixtures differ by {self.mean_of_spreads:.3g} in a single loss and by "
            f"{self.spread_of_mean:.3g} in the mean, since a share that helps one domain costs another: "
            f"{self.cancelled:.0%} cancels. Losses change with size unequally (slopes {lowest:.2f} to "
            f"{highest:.2f}), so what cancels at one size does not at the other. With equal slopes "
            "the mean "
            f"would be at {self.equal_slopes:.2f}; with these slopes and nothing else it is at "
            f"{self.slopes_alone:.2f}. Weighting each small loss by its slope gives "
            f"{self.reweighted:.2f}."
        )


def explain_mean(
    table: MixtureTable,
    *,
    small: float | None = None,  # the smallest
    large: float | None = None,  # the largest
    target: MixtureTarget | None = None,  # whose weights the mean has; equal
    seed: int = 0,
) -> MeanExplained:
    """Takes the rank correlation of the mean of all losses between two sizes apart.

    >>> shares = np.array([[x, 1 - x] for x in (0.1, 0.3, 0.5, 0.7, 0.9)])
    >>> losses = np.array([[1.9, 1.2], [1.7, 1.39], [1.5, 1.58], [1.3, 1.77], [1.1, 1.96]])
    >>> table = MixtureTable(
    ...     domains=("web", "code"), metrics=("a", "b"), runs=tuple("abcdefghij"),
    ...     shares=np.tile(shares, (2, 1)), values=np.concatenate([losses, losses * [0.8, 1.0]]),
    ...     sizes=np.repeat([1e6, 6e7], 5),
    ... )
    >>> explained = explain_mean(table)
    >>> explained.single, explained.observed, explained.equal_slopes
    ({'a': 1.0, 'b': 1.0}, -1.0, 1.0)
    """
    sizes = pairs_of_sizes(table)
    low = sizes[0][0] if small is None else small
    high = sizes[-1][1] if large is None else large
    if (low, high) not in sizes:
        raise InputError(
            f"`small` and `large` should be two sizes of the table, the smaller first. Found {low:g} "
            "and "
            f"{high:g}, and sizes {', '.join(format(size, 'g') for size in table.known_sizes)}."
        )
    weights = (target or MixtureTarget()).weights_in(table)
    used = weights > 0
    before, after, matched = _losses(table, low, high, seed)
    before, after = before[:, used], after[:, used]
    whole = ~np.isnan(before).any(axis=1) & ~np.isnan(after).any(axis=1)
    if whole.sum() < FEWEST:
        raise InputError(
            f"The mean of all metrics should be known for {FEWEST} or more mixtures at both sizes. "
            "Found "
            f"{int(whole.sum())}. Leave out metrics that most runs have no value of."
        )
    names = [name for name, wanted in zip(table.metrics, used, strict=True) if wanted]
    return _decompose(names, (low, high), before[whole], after[whole], weights[used], matched)


def _decompose(
    metrics: list[str],
    sizes: tuple[float, float],
    before: Floats,  # [mixture, metric]
    after: Floats,
    weights: Floats,
    matched: bool,
) -> MeanExplained:
    single = {
        name: rank_correlation(before[:, column], after[:, column])
        for column, name in enumerate(metrics)
    }
    centred = before - before.mean(axis=0)
    moved = after - after.mean(axis=0)
    energy = (centred**2).sum(axis=0)
    slopes = np.divide(
        (centred * moved).sum(axis=0), energy, out=np.ones_like(energy), where=energy > 0
    )
    left = moved - centred * slopes
    mean, large_mean = centred @ weights, moved @ weights
    # The slope that all would share: weighted by spread, as a loss that hardly varies moves no mean.
    common = float((weights**2 * energy * slopes).sum() / (weights**2 * energy).sum())
    return MeanExplained(
        small=sizes[0],
        large=sizes[1],
        mixtures=len(before),
        matched=matched,
        spread_of_mean=float(mean.std()),
        mean_of_spreads=float(centred.std(axis=0) @ weights),
        slopes=dict(zip(metrics, slopes.tolist(), strict=True)),
        single=single,
        observed=rank_correlation(mean, large_mean),
        equal_slopes=rank_correlation(mean, common * mean + left @ weights),
        slopes_alone=rank_correlation(mean, (centred * slopes) @ weights),
        reweighted=rank_correlation((centred * slopes) @ weights, large_mean),
    )


def _losses(table: MixtureTable, low: float, high: float, seed: int) -> tuple[Floats, Floats, bool]:
    small, large = table.of_size(low), table.of_size(high)
    left = group_mixtures(small.shares, small.values * small.signs)
    right = group_mixtures(large.shares, large.values * large.signs)
    mine, theirs = match_mixtures(left, right)
    if len(mine) >= FEWEST:
        return left.values[mine], right.values[theirs], True
    forecast = forecast_mixtures(small, seed=seed)
    return forecast.predict(right.shares) * small.signs, right.values, False
