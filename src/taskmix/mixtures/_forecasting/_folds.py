"""Runs divided into folds: runs of one mixture stay together, or one would tell of the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.mixtures._table import Floats

ALIKE = 6  # digits of shares


def mixture_of_run(shares: Floats) -> NDArray[np.int64]:
    """[run], the number of its mixture; runs of equal mixtures have the same."""
    _, found = np.unique(np.round(shares, ALIKE) + 0.0, axis=0, return_inverse=True)
    return np.asarray(found).reshape(-1)


def fold_of_run(shares: Floats, folds: int, seed: int) -> NDArray[np.int64]:
    """[run], the number of its fold; folds have about as many mixtures each."""
    mixtures = mixture_of_run(shares)
    count = int(mixtures.max()) + 1
    order = np.random.default_rng(seed).permutation(count)
    numbers = np.empty(count, dtype=np.int64)
    numbers[order] = np.arange(count) % folds
    return numbers[mixtures]
