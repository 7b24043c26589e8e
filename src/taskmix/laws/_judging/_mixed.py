r"""A linear mixed model: coefficients that all rows share, and some that vary between levels of a column.

$$w = X μ + Σ_b Z_b u_b + e, \quad u_b ∼ N(0, λ_b σ²), \quad e ∼ N(0, σ²)$$

    Henderson, "Best Linear Unbiased Estimation and Prediction under a Selection Model", Biometrics 31,
    1975, for μ and u together; Harville, JASA 72, 1977, Section 5, for the fixed point that gives the
    variances by restricted maximum likelihood.

Only inner products of the columns are needed, so trying which coefficients vary costs no pass over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from taskmix.laws._forms import Array

FIXED_POINTS = 40  # steps at most
SETTLED = 1e-3  # relative change of the ratios, below which they have settled
LEAST_RATIO = 1e-12  # of a variance, in units of what the rows tell: nothing varies
FIRST_RATIO = 10.0  # in the same units


@dataclass(frozen=True, eq=False)
class Moments:
    """Inner products of weighted columns and of the response: the first columns are those shared."""

    gram: Array  # [column, column]
    told: Array  # [column]
    square: float
    rows: int
    shared: int  # columns


@dataclass(frozen=True, eq=False)
class MixedFit:
    """What a linear mixed model says."""

    mean: Array  # [shared column]
    effects: tuple[Array, ...]  # [block][level]
    ratios: Array  # [block], variances over that of the noise
    variance: float  # of the noise, unbiased
    likeliest: float  # the same at its maximum likelihood
    covariance: Array  # [column, column] of mean and effects, in this order
    volume: float  # half the log determinant of the marginal covariance over the noise


def fit_mixed(
    moments: Moments,
    blocks: Sequence[NDArray[np.intp]],  # [block], its columns
    *,
    least: float,  # variance of the noise
    ratios: Array | None = None,  # to begin with
    hold: bool = False,  # the ratios as they are
) -> MixedFit:
    """Means, effects and variances of the blocks."""
    shared = np.arange(moments.shared)
    chosen = np.concatenate([shared, *blocks]).astype(np.intp)
    gram, told = moments.gram[np.ix_(chosen, chosen)], moments.told[chosen]
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    gram, told = gram / np.outer(scale, scale), told / scale
    sizes = [len(block) for block in blocks]
    ends = np.cumsum([0, *sizes])
    places = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    # What rows tell of a level of the block, so that ratios of all blocks are of one size.
    units = np.array([np.mean(scale[moments.shared :][place] ** 2) for place in places])
    found = FIRST_RATIO / units if ratios is None else np.maximum(ratios, LEAST_RATIO / units)
    for _ in range(1 if hold or not blocks else FIXED_POINTS):
        solved = _solve(moments, gram, told, scale, found, sizes, least)
        if hold:
            break
        mean, effects, inverse, variance, _, _ = solved
        before = found.copy()
        for place, span in enumerate(places):
            known = sizes[place] - float(np.trace(inverse[span, span])) / found[place]
            spread = float(effects[span] @ effects[span])
            found[place] = max(spread / (variance * max(known, 1e-9)), LEAST_RATIO / units[place])
        if np.all(np.abs(np.log(found / before)) < SETTLED):
            break
    if not hold:
        solved = _solve(moments, gram, told, scale, found, sizes, least)
    mean, effects, _, variance, covariance, volume = solved
    square = moments.square - float(np.concatenate([mean, effects]) @ (told * scale))
    likeliest = max(square / moments.rows, least)
    return MixedFit(
        mean,
        tuple(effects[span] for span in places),
        found,
        variance,
        likeliest,
        covariance * variance,
        volume,
    )


def _solve(
    moments: Moments,
    gram: Array,
    told: Array,
    scale: Array,
    ratios: Array,
    sizes: Sequence[int],
    least: float,
) -> tuple[Array, Array, Array, float, Array, float]:
    """Henderson's equations: means, effects, their posterior variance, the noise, all covariances."""
    k = moments.shared
    root = np.repeat(np.sqrt(ratios), sizes) * scale[k:]
    across = gram[:k, k:] * root
    inner = np.eye(len(root)) + gram[k:, k:] * np.outer(root, root)
    factor = cho_factor(inner, lower=True) if len(root) else None
    solved = cho_solve(factor, across.T) if factor else np.zeros((0, k))
    outer = gram[:k, :k] - across @ solved
    means = np.linalg.pinv((outer + outer.T) / 2, rcond=1e-13, hermitian=True)
    rest = told[k:] * root
    mean = means @ (told[:k] - solved.T @ rest)
    told_inner = cho_solve(factor, rest) if factor else rest
    effects = told_inner - solved @ mean
    inverse = cho_solve(factor, np.eye(len(root))) if factor else np.zeros((0, 0))
    inverse = inverse + solved @ means @ solved.T
    whole = np.block([[means, -(solved @ means).T], [-solved @ means, inverse]])
    unscale = np.concatenate([1 / scale[:k], root / scale[k:]])
    covariance = whole * np.outer(unscale, unscale)
    mean, effects = mean * unscale[:k], effects * unscale[k:]
    square = moments.square - float(np.concatenate([mean, effects]) @ (told * scale))
    variance = max(square / max(moments.rows - k, 1), least)
    volume = float(np.sum(np.log(np.diag(factor[0])))) if factor else 0.0
    return mean, effects, covariance[k:, k:], variance, covariance, volume
