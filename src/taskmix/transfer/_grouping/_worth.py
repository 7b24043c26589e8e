r"""Groups of tasks to train together: what a partition is worth, and what limits it.

A group's worth is the sum over its tasks of what the other members are predicted to gain them, from
the rows of the transfer matrix:

$$V = \sum_{G} \sum_{i \in G} \sum_{j \in G, j \ne i} \text{gain}_{ij}.$$

Only the sum of both directions counts, $A_{ij} = \text{gain}_{ij} + \text{gain}_{ji}$, so grouping
is a clustering that makes the A within groups as large as it can be. A group of one is worth
nothing and costs nothing. The gains of different targets are added, so they should be in one unit:
`relative_gains` of a matrix are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import OptionError, ShapeError

SMALLEST_RISE = 1e-12  # of the largest gain; by rounding errors alone moves would go on for ever


@dataclass(frozen=True, kw_only=True)
class GroupLimits:
    """How large a group may be and how many there may be.

    >>> GroupLimits(largest=2).resolved(tasks=5)  # at most two in a group, any number of groups
    (2, 5)
    >>> group_exactly(np.ones((4, 4)), GroupLimits(groups=1)).groups
    ((0, 1, 2, 3),)
    """

    largest: int | None = None  # tasks in a group; None: any number
    groups: int | None = None  # at most, which is the number of models to train; None: any number

    def __post_init__(self) -> None:
        for name, value in (("largest", self.largest), ("groups", self.groups)):
            if value is not None and value < 1:
                raise OptionError(f"`{name}` should be at least 1. Found {value}.")

    def resolved(self, tasks: int) -> tuple[int, int]:
        """Both numbers for so many tasks."""
        largest = tasks if self.largest is None else min(self.largest, tasks)
        groups = tasks if self.groups is None else min(self.groups, tasks)
        if largest * groups < tasks:
            raise OptionError(
                f"{tasks} tasks should fit into {groups} groups of at most {largest}. Found room for "
                f"{largest * groups}. Allow more groups, or larger ones."
            )
        return largest, groups


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """Every task in one group."""

    groups: tuple[tuple[int, ...], ...]  # places of tasks, each in order, by their first
    value: float  # V
    gains: NDArray[np.float64]  # [task], what each is predicted to gain from its group

    def named(self, tasks: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The groups by the names of the tasks."""
        return tuple(tuple(tasks[place] for place in group) for group in self.groups)


def as_gains(gains: ArrayLike) -> NDArray[np.float64]:
    """A square of gains [target, source] with zeros on the diagonal."""
    square = np.array(gains, dtype=np.float64)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or len(square) == 0:
        raise ShapeError(f"`gains` should be [target, source], square. Found shape {square.shape}.")
    np.fill_diagonal(square, 0.0)
    if not np.all(np.isfinite(square)):
        raise ShapeError(
            "`gains` should be known for every pair of tasks. Found NaN or infinite ones. Fit the "
            "matrix with `ridge`, or leave those tasks out."
        )
    return square


def grouping_of(gains: NDArray[np.float64], groups: Iterable[Iterable[int]]) -> Grouping:
    """A partition with its worth."""
    ordered = tuple(sorted(tuple(sorted(int(task) for task in group)) for group in groups))
    each = np.zeros(len(gains))
    for group in ordered:
        each[list(group)] = gains[np.ix_(group, group)].sum(axis=1)
    return Grouping(groups=ordered, value=float(each.sum()), gains=each)


def improve_by_moves(
    gains: NDArray[np.float64],  # [target, source]
    groups: Iterable[Iterable[int]],
    limits: GroupLimits,
) -> Grouping:
    """Tasks moved and exchanged between groups while that raises the worth."""
    both = gains + gains.T
    count = len(gains)
    largest, most = limits.resolved(count)
    label = np.empty(count, dtype=np.int64)
    for number, group in enumerate(groups):
        label[list(group)] = number
    tasks = np.arange(count)
    while True:
        inside = np.eye(count)[label]  # [task, group]; an empty group is a place for a new one
        sizes = inside.sum(axis=0)
        pull = both @ inside  # [task, group], what each would gain there
        stay = pull[tasks, label]
        rise = pull - stay[:, None]
        rise[:, sizes >= largest] = -np.inf
        if (sizes > 0).sum() >= most:
            rise[:, sizes == 0] = -np.inf
        rise[tasks, label] = -np.inf
        there = pull[:, label]  # [task, other]: the task in the other's group
        swap = there + there.T - stay[:, None] - stay[None, :] - 2 * both
        swap[label[:, None] == label[None, :]] = -np.inf
        if max(rise.max(), swap.max()) <= SMALLEST_RISE * (1 + np.abs(both).max()):
            break
        if rise.max() >= swap.max():
            task, goal = np.unravel_index(int(rise.argmax()), rise.shape)
            label[task] = goal
        else:
            one, other = np.unravel_index(int(swap.argmax()), swap.shape)
            label[one], label[other] = label[other], label[one]
    return grouping_of(gains, [np.flatnonzero(label == number) for number in np.unique(label)])
