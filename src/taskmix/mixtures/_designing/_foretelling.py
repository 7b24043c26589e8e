"""What the regret will be after a batch, without flattery.

Gains taken from some draws fit these draws too well, the more so the more runs a batch has: with 64
draws and 12 runs the regret after them would seem a tenth of what it is. So the draws are divided. From
most of them the gains are taken, the others play the truth: each in turn shows its results, with
noise, the mixture is chosen by them, and what it gives away by that draw is counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._designing._gaining import Beliefs, shrunk_gains
from taskmix.mixtures._table import Floats

FOLDS = 8


def regrets_after(
    start: Beliefs,
    runs: Sequence[int],
    best_of_each: Floats,  # [draw], the lowest target by each draw
    random: np.random.Generator,
) -> Floats:
    """[draw], the regret of what would be chosen after the runs, were that draw the truth."""
    targets = start.target(start.truth)  # [draw, contender]
    found = np.empty(len(targets))
    folds = random.permutation(len(targets)) % FOLDS
    luck = random.standard_normal((len(runs), *start.luck.shape))
    for fold in range(FOLDS):
        is_held = folds == fold
        chosen = _expected_after(start, runs, np.flatnonzero(~is_held), luck)[is_held].argmin(
            axis=1
        )
        found[is_held] = targets[is_held, chosen] - best_of_each[is_held]
    return found


def _expected_after(
    start: Beliefs, runs: Sequence[int], teachers: NDArray[np.int64], luck: Floats
) -> Floats:
    """[draw, contender], the target expected after the runs, gains being taken from some draws."""
    contenders = start.truth.shape[1]
    truth = np.concatenate([start.truth, start.run_truth[:, runs]], axis=1)
    expected = np.broadcast_to(truth[teachers].mean(axis=0), truth.shape)
    for number, run in enumerate(runs):
        left, noise, place = truth - expected, start.noise[run], contenders + number
        here = left[:, place : place + 1]
        gain = shrunk_gains(here[teachers], left[teachers], noise[None])[0]
        expected = expected + gain * (here + (noise * luck[number])[:, None])
    after: Floats = start.target(expected[:, :contenders]) + start.offset
    return after
