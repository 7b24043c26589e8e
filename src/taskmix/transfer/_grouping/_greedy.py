"""Groups from below: begin with every task alone and join the two groups that gain most by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.transfer._grouping._worth import Grouping, GroupLimits, as_gains, improve_by_moves


def group_greedily(gains: ArrayLike, limits: GroupLimits | None = None) -> Grouping:
    """Agglomerative grouping of `gains` [target, source], improved by moves and exchanges.

    Joins go on while they raise the worth, and beyond that only as far as the number of groups
    demands.

    >>> gains = np.kron(np.eye(2), np.ones((2, 2)))  # two pairs that help each other and no others
    >>> group_greedily(gains).groups
    ((0, 1), (2, 3))
    """
    square, bounds = as_gains(gains), limits or GroupLimits()
    largest, most = bounds.resolved(len(square))
    both = square + square.T
    groups = [[task] for task in range(len(square))]
    while len(groups) > 1:
        rise = _rises_by_joining(both, groups, largest)
        one, other = np.unravel_index(int(rise.argmax()), rise.shape)
        if rise[one, other] <= 0 and len(groups) <= most:
            break
        if np.isfinite(rise[one, other]):
            groups[one] += groups.pop(max(one, other))
        else:
            _dissolve(both, groups, largest)
    return improve_by_moves(square, groups, bounds)


def _rises_by_joining(
    both: NDArray[np.float64], groups: list[list[int]], largest: int
) -> NDArray[np.float64]:
    """[group, group], what joining two would add, above the diagonal and where they fit."""
    inside = np.zeros((len(groups), len(both)))
    for number, group in enumerate(groups):
        inside[number, group] = 1.0
    sizes = inside.sum(axis=1)
    fits = sizes[:, None] + sizes[None, :] <= largest
    return np.where(np.triu(fits, k=1), inside @ both @ inside.T, -np.inf)


def _dissolve(both: NDArray[np.float64], groups: list[list[int]], largest: int) -> None:
    """Where no two groups fit together, the members of the smallest go where there is room."""
    for task in groups.pop(min(range(len(groups)), key=lambda number: len(groups[number]))):
        room = [group for group in groups if len(group) < largest]
        max(room, key=lambda group: float(both[task, group].sum())).append(task)
