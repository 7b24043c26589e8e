"""The best groups of all, for a dozen tasks: dynamic programming over sets of tasks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import OptionError
from taskmix.transfer._grouping._worth import Grouping, GroupLimits, as_gains, grouping_of

MOST_TASKS = 13  # each further task takes three times as long, and twice the memory


def group_exactly(gains: ArrayLike, limits: GroupLimits | None = None) -> Grouping:
    """The partition of largest worth within the limits.

    The best partition of a set into c groups is a group with the set's first task, and the best
    partition of the rest into c − 1. All sets are worked out at once, which takes 3^tasks additions
    for each c.

    >>> gains = [[0, 1, -2], [1, 0, -2], [1, 1, 0]]  # [target, source]: the third costs what it gains
    >>> found = group_exactly(gains)
    >>> found.groups, found.value
    (((0, 1), (2,)), 2.0)
    """
    square = as_gains(gains)
    count = len(square)
    if count > MOST_TASKS:
        raise OptionError(
            f"Exact grouping should have at most {MOST_TASKS} tasks. Found {count}. Use "
            "`group_greedily` or `group_spectrally`."
        )
    largest, most = (limits or GroupLimits()).resolved(count)
    everything = (1 << count) - 1
    worth, sizes = _worths(square + square.T)
    candidates = np.flatnonzero((sizes > 0) & (sizes <= largest))
    best = np.full(1 << count, -np.inf)
    best[0] = 0.0
    layers: list[NDArray[np.int64]] = []
    value, length = -np.inf, 0
    for _ in range(most):
        following = np.full(1 << count, -np.inf)
        chosen = np.zeros(1 << count, dtype=np.int64)
        for group in candidates.tolist():
            first = group & -group
            rest = np.flatnonzero(np.isfinite(best))
            # The group has the first task of the whole, so each partition is met once.
            rest = rest[((rest & group) == 0) & ((rest & (first - 1)) == 0)]
            total = best[rest] + worth[group]
            places = rest | group
            better = total > following[places]
            following[places[better]] = total[better]
            chosen[places[better]] = group
        layers.append(chosen)
        best = following
        if best[everything] > value:
            value, length = float(best[everything]), len(layers)
    groups, left = [], everything
    for layer in reversed(layers[:length]):
        groups.append([task for task in range(count) if layer[left] >> task & 1])
        left ^= int(layer[left])
    return grouping_of(square, groups)


def _worths(both: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The worth and the size of every set of tasks, a set being the bits of its place."""
    worth, sizes = np.zeros(1), np.zeros(1, dtype=np.int64)
    pull = np.zeros((1, len(both)))  # [set, task], the sum of the set's A with the task
    for task in range(len(both)):
        worth = np.concatenate([worth, worth + pull[:, task]])
        pull = np.concatenate([pull, pull + both[task]])
        sizes = np.concatenate([sizes, sizes + 1])
    return worth, sizes
