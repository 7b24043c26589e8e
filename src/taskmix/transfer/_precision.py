r"""How well a design of `count` subsets will tell sources apart, before any of it is trained.

With n subsets of one size drawn uniformly from k sources and q = size/k, the matrix $X^\top X$ of
the indicators is in expectation $a I + b J$ with $a = n q (1-q) k/(k-1)$, so that with many subsets

$$\mathrm{SE}(\theta_i - \bar\theta) = \sigma \big/ \sqrt{n\, q (1-q)\, k/(k-1)}.$$

With few the inverse of a random matrix is larger than that of its expectation, and k of the n are
spent on the coefficients: n − k takes the place of n. That lies one to ten hundredths above the
errors of drawn designs from n = 2k on, where the formula with n lies far below
(docs/transfer-reference.md). Where every subset occurs equally often (`complete`) the formula
stands as it is, and its exact value is the part $\sqrt{1 - 1/k}$ of it.

Theorem 1 of Li, Nguyen and Zhang (2023) bounds the length of the whole error by a multiple of
$\sqrt{k/n}$. Its constant is not known, so no study can be planned by it.

The noise σ is the standard deviation of one row about the linear surrogate: that over seeds and
what is not linear, together. An effect itself, measured from the target alone, also needs the mean
effect, which is the mean of all rows minus f(∅), divided by the size.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from taskmix.errors import OptionError, ShapeError
from taskmix.transfer._subsets import check_count, check_size, check_sources


def contrast_error(
    noise: float, *, sources: int, size: int, count: int, complete: bool = False
) -> float:
    """The standard error of θ_i − mean θ that `count` subsets will give.

    >>> round(contrast_error(1.0, sources=25, size=5, count=125), 3)  # 1 / √(100 · 0.2 · 0.8 · 25/24)
    0.245
    """
    check_count(count)
    information = _information_per_subset(sources, size)
    if complete:
        return _checked_positive("noise", noise) / math.sqrt(count * information)
    if count <= sources:
        raise OptionError(
            f"`count` should be above the number of sources, {sources}, so that every effect can be "
            f"fitted. Found {count}. Ask for more subsets."
        )
    return _checked_positive("noise", noise) / math.sqrt((count - sources) * information)


def subsets_for_error(noise: float, *, sources: int, size: int, error: float) -> int:
    """The least number of subsets with `contrast_error` of no more than `error`.

    >>> subsets_for_error(1.0, sources=25, size=5, error=0.25)  # 1 / (0.25² · 0.2 · 0.8 · 25/24) = 96
    121
    """
    ratio = _checked_positive("noise", noise) / _checked_positive("error", error)
    needed = ratio * ratio / _information_per_subset(sources, size)
    # A division that ends a hair above a whole number has not asked for one more subset.
    return sources + max(math.ceil(needed * (1 - 1e-12)), 1)


def anchored_error(
    noise: float,
    *,
    sources: int,
    size: int,
    count: int,
    single_runs: int,
    single_noise: float | None = None,  # the same as `noise`
    complete: bool = False,
) -> float:
    """The standard error of an effect itself, the runs of the target alone counted in.

    >>> error = anchored_error(1.0, sources=5, size=2, count=25, single_runs=25)
    >>> round(error**2, 4)  # 1 / (20 · 0.3) of the contrast, times 4/5, and (1/25 + 1/25) / 2²
    0.1533
    """
    if single_runs < 1:
        raise OptionError(
            f"`single_runs` should be at least 1 run of the target alone. Found {single_runs}."
        )
    alone = noise if single_noise is None else single_noise
    contrast = contrast_error(noise, sources=sources, size=size, count=count, complete=complete)
    level = (
        noise * noise / count + _checked_positive("single_noise", alone) ** 2 / single_runs
    ) / size**2
    return math.sqrt(contrast * contrast * (1 - 1 / sources) + level)


def seed_noise(
    outcomes: ArrayLike,  # [subset, seed]; NaN where a run failed or was not made
) -> float:
    """The standard deviation over seeds, pooled over the subsets of a pilot.

    It is a lower bound of the noise above: what is not linear comes on top. Where a surrogate has
    been fitted to the pilot, its `deviation` has both.

    >>> seed_noise([[1.0, 3.0], [5.0, 5.0]])  # (1 + 1 + 0 + 0) / 2 degrees of freedom, and its root
    1.0
    """
    table = np.asarray(outcomes, dtype=np.float64)
    if table.ndim != 2:
        raise ShapeError(f"`outcomes` should be [subset, seed]. Found shape {table.shape}.")
    runs = np.isfinite(table).sum(axis=1)
    repeated = table[runs > 1]
    degrees = int((runs[runs > 1] - 1).sum())
    if degrees == 0:
        raise ShapeError(
            "A pilot should have a subset with at least two finished runs. Found none. Train one "
            "subset under several seeds."
        )
    apart = repeated - np.nanmean(repeated, axis=1, keepdims=True)
    return math.sqrt(float(np.nansum(apart * apart)) / degrees)


def _information_per_subset(sources: int, size: int) -> float:
    """What one subset adds to a, in units of 1/σ²."""
    check_sources(sources)
    check_size(size, sources - 1)
    share = size / sources
    return share * (1 - share) * sources / (sources - 1)


def _checked_positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise OptionError(f"`{name}` should be a number above zero. Found {value}.")
    return value
