r"""A linear mixed model: coefficients that rows share, and some that vary between levels of a column.

$$w = X μ + Σ_b Z_b u_b + e, \quad u_b ∼ N(0, λ_b σ²), \quad e ∼ N(0, σ²)$$

    Henderson, "Best Linear Unbiased Estimation and Prediction under a Selection Model", Biometrics 31,
    1975, for μ and u together; Harville, JASA 72, 1977, Section 5, for the fixed point that gives the
    variances by restricted maximum likelihood.

Only inner products of the columns are needed, so trying which coefficients vary costs no pass over
rows.

Which constants vary between groups is chosen by evidence. A block is a constant and the column whose
levels have it of their own. At a tangent of the law (`_sharing.py`) all that a choice needs are inner
products, so many choices are cheap to try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._evaluate import Array
from taskmix.laws._factors import GroupFactors
from taskmix.laws._fit import Observations

Block = tuple[int, str]  # a constant, and the column whose levels have it of their own
PASSES = 8  # over all blocks, at most
FEW_BLOCKS = 4  # that are exchanged for others; of more, too many pairs
TRIED_STEPS = 8  # towards the variances of blocks that are tried
SIGN_NATS = 1.0  # for a constant that is not shared, besides its variance


def block_moments(
    slopes: Array,
    response: Array,
    data: Observations,
    factors: GroupFactors,
    blocks: Sequence[Block],
) -> tuple[MixedMoments, dict[Block, NDArray[np.intp]]]:
    """Inner products of the slopes and of each block's columns, and where these are."""
    count = slopes.shape[1]
    columns, places, first = [slopes], {}, count
    for place, name in blocks:
        code, levels = factors.codes[name], len(factors.levels[name])
        block = np.zeros((len(data), levels))
        block[np.arange(len(data)), code] = slopes[:, place]
        columns.append(block)
        places[place, name] = np.arange(first, first + levels)
        first += levels
    whole = np.concatenate(columns, axis=1)
    moments = MixedMoments(
        whole.T @ whole, whole.T @ response, float(response @ response), len(data), count
    )
    return moments, places


def _nats(moments: MixedMoments, columns: Sequence[Any], least: float) -> float:
    """Of the rows under blocks, with the blocks' price."""
    solved = fit_mixed(moments, columns, least=least, steps=TRIED_STEPS)
    price = len(columns) * (0.5 * np.log(moments.rows) + SIGN_NATS)
    return 0.5 * moments.rows * float(np.log(solved.likeliest)) + solved.volume + float(price)


def choose_blocks(
    moments: MixedMoments,
    places: dict[Block, NDArray[np.intp]],
    blocks: tuple[Block, ...],
    least: float,
) -> tuple[Block, ...]:
    """Blocks added, taken away and exchanged one at a time, as long as the message gets shorter."""

    def nats(trial: tuple[Block, ...]) -> float:
        return _nats(moments, [places[block] for block in trial], least)

    best = nats(blocks)
    for _ in range(PASSES):
        before = blocks
        more = sorted((nats((*blocks, block)), block) for block in places if block not in blocks)
        for alone, block in more:
            if alone < best and (shorter := nats(trial := (*blocks, block))) < best:
                best, blocks = shorter, trial
        for block in blocks:
            trial = tuple(each for each in blocks if each != block)
            if (shorter := nats(trial)) < best:
                best, blocks = shorter, trial
        if blocks == before and len(blocks) <= FEW_BLOCKS:
            trials = [
                (*(each for each in blocks if each != old), new)
                for old, new in product(blocks, places)
                if new not in blocks
            ]
            found = [(nats(trial), trial) for trial in trials]
            best, blocks = min([(best, blocks), *found])
        if blocks == before:
            break
    return tuple(sorted(blocks))


FIXED_POINTS = 40  # steps at most
SETTLED = 1e-3  # relative change of the ratios, below which they have settled
LEAST_RATIO = 1e-12  # of a variance, in units of what the rows tell: nothing varies
FIRST_RATIO = 10.0  # in the same units
RIDGE = 1e-9  # of a shared column's square: two constants that tell the same are both known


@dataclass(frozen=True, eq=False)
class MixedMoments:
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
    moments: MixedMoments,
    blocks: Sequence[NDArray[np.intp]],  # [block], its columns
    *,
    least: float,  # variance of the noise
    ratios: Array | None = None,  # as they are; found where None
    steps: int = FIXED_POINTS,
) -> MixedFit:
    """Means, effects and variances of the blocks."""
    k = moments.shared
    chosen = np.concatenate([np.arange(k), *blocks]).astype(np.intp)
    gram, told = moments.gram[np.ix_(chosen, chosen)], moments.told[chosen]
    scale = np.sqrt(np.diag(gram))
    told_by = scale**2
    scale[scale == 0] = 1.0  # a level without rows, or a constant that nothing depends on
    gram, told = gram / np.outer(scale, scale), told / scale
    sizes = np.array([len(block) for block in blocks], dtype=np.intp)
    ends = k + np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    places = [slice(a, b) for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    # What rows tell of a level of the block, so that ratios of all blocks are of one size.
    units = np.array([np.mean(told_by[place]) or 1.0 for place in places])
    found = FIRST_RATIO / units if ratios is None else np.maximum(ratios, LEAST_RATIO / units)
    for step in range(steps if blocks and ratios is None else 1):
        root, inverse, solved, square = _solve(moments, gram, told, scale, found, sizes)
        variance = max(square / max(moments.rows - k, 1), least)
        if ratios is not None or not blocks or step == steps - 1:
            break
        # In units of each effect's own variance: squares of the effects, and what is open of them.
        known = np.add.reduceat(1 - np.diag(inverse), ends[:-1])
        squares = np.add.reduceat(solved**2, ends[:-1])
        moved = squares / variance / np.maximum(known, 1e-9)
        moved = np.maximum(found * moved, LEAST_RATIO / units)
        if np.all(np.abs(np.log(moved / found)) < SETTLED):
            break
        found = moved
    inner = np.eye(len(root) - k) + gram[k:, k:] * np.outer(root[k:], root[k:])
    volume = float(np.sum(np.log(np.diag(np.linalg.cholesky(inner))))) if len(blocks) else 0.0
    back = root / scale
    return MixedFit(
        solved[:k] * back[:k],
        tuple((solved * back)[place] for place in places),
        found,
        variance,
        max(square / moments.rows, least),
        inverse * np.outer(back, back) * variance,
        volume,
    )


def _solve(
    moments: MixedMoments,
    gram: Array,
    told: Array,
    scale: Array,
    ratios: Array,
    sizes: NDArray[np.intp],
) -> tuple[Array, Array, Array, float]:
    """Henderson's equations: the columns' units, the inverse, means and effects, what is left."""
    k = moments.shared
    root = np.concatenate([np.ones(k), np.repeat(np.sqrt(ratios), sizes) * scale[k:]])
    whole = gram * np.outer(root, root)
    whole[np.diag_indices_from(whole)] += np.repeat([RIDGE, 1.0], [k, len(root) - k])
    try:
        inverse = np.linalg.inv(whole)
    except np.linalg.LinAlgError:  # columns of very unequal size
        inverse = np.linalg.pinv(whole, rcond=1e-14, hermitian=True)
    solved = inverse @ (told * root)
    # Not only its value at the very solution, which nearly equal columns leave inexact.
    square = moments.square + float(solved @ (whole @ solved - 2 * told * root))
    return root, np.asarray(inverse, dtype=np.float64), np.asarray(solved), square
