"""Which constants vary between groups: blocks of the linear mixed model, chosen by evidence.

A block is a constant and the column whose levels have it of their own. At a tangent of the law
(`_sharing.py`) all that a choice needs are inner products, so many choices are cheap to try.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.laws._fitting import Observations
from taskmix.laws._forms import Array
from taskmix.laws._judging._factors import GroupFactors
from taskmix.laws._judging._mixed import MixedMoments, fit_mixed

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
