r"""Does a surrogate know subsets it was not fitted to?

    Li, Nguyen and Zhang, "Identification of Negative Transfers in Multitask Learning Using
    Surrogate Models", TMLR 2023, "Predicting positive vs. negative transfers".

Some subsets are held out, those of other sizes or a share at random; the surrogate is fitted to the
rest and predicts them. Reported are Spearman's rank correlation, $R^2$ about the mean of the
held-out losses (below zero where that mean would have been the better prediction), and F1 of saying
whether a subset helps the target, f(S) < f(∅), and of saying that it harms it. Intervals are
percentiles of the bootstrap over held-out subsets: they say how much hangs on which subsets were
held out, given the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import InputError, OptionError
from taskmix.numerics import Interval, check_level
from taskmix.transfer._outcomes import SubsetOutcomes

FEWEST_TO_TEST_ON = 3  # the rank correlation of two subsets is always 1 or −1


class Surrogate(Protocol):
    """The paper's g(S); g(∅) is the measured loss of the target alone."""

    @property
    def target(self) -> str: ...

    @property
    def sources(self) -> tuple[str, ...]: ...

    @property
    def anchor(self) -> float: ...  # g(∅)

    def predict(self, subsets: ArrayLike) -> NDArray[np.float64]: ...  # [..., source] to [...]


Fit = Callable[[SubsetOutcomes], Surrogate]


@dataclass(frozen=True, kw_only=True)
class Extrapolation:
    """How well held-out subsets were predicted. NaN where a figure is not defined."""

    spearman: Interval
    r_squared: Interval
    f1_positive: Interval  # of "this subset helps"
    f1_negative: Interval  # of "this subset harms"
    positive_share: float  # of held-out subsets that did help
    observed: NDArray[np.float64]  # [held-out subset], losses
    predicted: NDArray[np.float64]  # [held-out subset]


def hold_out_sizes(outcomes: SubsetOutcomes, sizes: Collection[int]) -> NDArray[np.bool_]:
    """[subset], those of the sizes given.

    >>> runs = np.arange(16)[:, None] >> np.arange(4) & 1  # every subset of four sources
    >>> losses = 1 + runs @ [-0.2, -0.1, 0.1, 0.3]
    >>> sources = ["news", "tweets", "code", "forums"]
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=sources)
    >>> int(hold_out_sizes(table, [3, 4]).sum())  # four subsets of three, and all
    5
    """
    held = np.isin(outcomes.sizes, list(sizes))
    if not held.any():
        raise InputError(
            f"There should be subsets of the sizes {sorted(sizes)} to hold out. Found the sizes "
            f"{np.unique(outcomes.sizes).tolist()}. Name some of these, or train others."
        )
    return held


def hold_out_share(
    outcomes: SubsetOutcomes, share: float, *, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """[subset], a share at random."""
    rows = len(outcomes.losses)
    held = np.zeros(rows, dtype=np.bool_)
    held[generator.permutation(rows)[: max(round(share * rows), 1)]] = True
    return held


def extrapolate(
    outcomes: SubsetOutcomes,
    fit: Fit,
    held_out: NDArray[np.bool_],  # [subset]
    *,
    generator: np.random.Generator,
    resamples: int = 1000,
    level: float = 0.95,
) -> Extrapolation:
    """One surrogate, fitted without the held-out subsets and tried on them.

    >>> runs = np.arange(16)[:, None] >> np.arange(4) & 1  # every subset of four sources
    >>> losses = 1 + runs @ [-0.2, -0.1, 0.1, 0.3]
    >>> sources = ["news", "tweets", "code", "forums"]
    >>> table = gather_outcomes(runs, losses, target="reviews", sources=sources)
    >>> held_out, generator = hold_out_sizes(table, [3, 4]), np.random.default_rng(0)
    >>> round(extrapolate(table, fit_linear_surrogate, held_out, generator=generator).r_squared.mean, 6)
    1.0
    """
    held = int(held_out.sum())
    if held_out.shape != outcomes.losses.shape or not FEWEST_TO_TEST_ON <= held < len(held_out):
        raise InputError(
            f"At least {FEWEST_TO_TEST_ON} of the {len(outcomes.losses)} subsets should be held out, "
            f"and some left to fit. Found {held} held out of {len(held_out)}."
        )
    if resamples < 1:
        raise OptionError(f"`resamples` should be at least 1. Found {resamples}.")
    check_level(level)
    chosen = generator.integers(held, size=(resamples, held))
    tried = outcomes.take(held_out)
    observed = tried.losses
    predicted = fit(outcomes.take(~held_out)).predict(tried.subsets)
    seen, said = observed[chosen], predicted[chosen]
    helped, said_to_help = observed < outcomes.anchor, predicted < outcomes.anchor

    def interval(value: NDArray[np.float64], samples: NDArray[np.float64]) -> Interval:
        return _interval(float(value), samples, held, level)

    return Extrapolation(
        spearman=interval(_spearman(observed, predicted), _spearman(seen, said)),
        r_squared=interval(_r_squared(observed, predicted), _r_squared(seen, said)),
        f1_positive=interval(_f1(helped, said_to_help), _f1(helped[chosen], said_to_help[chosen])),
        f1_negative=interval(
            _f1(~helped, ~said_to_help), _f1(~helped[chosen], ~said_to_help[chosen])
        ),
        positive_share=float(helped.mean()),
        observed=observed,
        predicted=predicted,
    )


def _interval(value: float, samples: NDArray[np.float64], n: int, level: float) -> Interval:
    known = samples[np.isfinite(samples)]
    if len(known) == 0 or not np.isfinite(value):
        return Interval(value, np.nan, np.nan, n, level)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high), n, level)


def _spearman(observed: NDArray[np.float64], predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Along the last axis; ties share their mean rank."""
    from scipy.stats import rankdata

    one, other = (rankdata(values, axis=-1) for values in (observed, predicted))
    one, other = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (one, other))
    below = np.sqrt((one * one).sum(axis=-1) * (other * other).sum(axis=-1))
    return _ratio((one * other).sum(axis=-1), below)


def _r_squared(
    observed: NDArray[np.float64], predicted: NDArray[np.float64]
) -> NDArray[np.float64]:
    apart = ((observed - predicted) ** 2).sum(axis=-1)
    spread = ((observed - observed.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    return 1 - _ratio(apart, spread)


def _f1(truth: NDArray[np.bool_], said: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Along the last axis; not defined where there is nothing to find and nothing was said."""
    right = (truth & said).sum(axis=-1)
    return _ratio(2.0 * right, 1.0 * truth.sum(axis=-1) + said.sum(axis=-1))


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    known = below > 0
    return np.where(known, above / np.where(known, below, 1.0), np.nan)
