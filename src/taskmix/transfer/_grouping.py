r"""Groups of tasks to train together: what a partition is worth, what limits it, and the best one.

A group's worth is the sum over its tasks of what the other members are predicted to gain them, from
the rows of the transfer matrix:

$$V = \sum_{G} \sum_{i \in G} \sum_{j \in G, j \ne i} \text{gain}_{ij}.$$

Only the sum of both directions counts, $A_{ij} = \text{gain}_{ij} + \text{gain}_{ji}$, so grouping
is a clustering that makes the A within groups as large as it can be. A group of one is worth
nothing and costs nothing. The gains of different targets are added, so they should be in one unit:
`relative_gains` of a matrix are.

Up to thirteen tasks the best partition of all is found by dynamic programming over sets of tasks. Of
more tasks, partitions drawn at random are improved by moving and exchanging tasks, and the best is
taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import OptionError, ShapeError

MOST_TASKS = 13  # that are grouped exactly; each further one takes three times as long
STARTS = 50  # for more tasks: with 20 the best of 29 was missed by 1 to 2 % more often
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


def group_tasks(gains: ArrayLike, limits: GroupLimits | None = None) -> Grouping:
    """The groups of largest worth: exact for up to thirteen tasks, else the best of a search.

    >>> gains = np.kron(np.eye(7), np.ones((2, 2)))  # seven pairs that help each other and no others
    >>> group_tasks(gains).groups[:2], group_tasks(gains).value
    (((0, 1), (2, 3)), 14.0)
    """
    square, bounds = _as_gains(gains), limits or GroupLimits()
    count = len(square)
    if count <= MOST_TASKS:
        return group_exactly(square, bounds)
    largest, most = bounds.resolved(count)
    generator = np.random.default_rng(0)
    found = []
    for _ in range(STARTS):
        number = int(generator.integers(-(-count // largest), most + 1))
        label = generator.permutation(count) % number
        found.append(_improve_by_moves(square, label, bounds))
    return max(found, key=lambda grouping: grouping.value)


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
    square = _as_gains(gains)
    count = len(square)
    if count > MOST_TASKS:
        raise OptionError(
            f"Exact grouping should have at most {MOST_TASKS} tasks. Found {count}. Use `group_tasks`."
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
    return _grouping_of(square, groups)


def _worths(both: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The worth and the size of every set of tasks, a set being the bits of its place."""
    worth, sizes = np.zeros(1), np.zeros(1, dtype=np.int64)
    pull = np.zeros((1, len(both)))  # [set, task], the sum of the set's A with the task
    for task in range(len(both)):
        worth = np.concatenate([worth, worth + pull[:, task]])
        pull = np.concatenate([pull, pull + both[task]])
        sizes = np.concatenate([sizes, sizes + 1])
    return worth, sizes


def _as_gains(gains: ArrayLike) -> NDArray[np.float64]:
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


def _grouping_of(gains: NDArray[np.float64], groups: Iterable[Iterable[int]]) -> Grouping:
    """A partition with its worth."""
    ordered = tuple(sorted(tuple(sorted(int(task) for task in group)) for group in groups))
    each = np.zeros(len(gains))
    for group in ordered:
        each[list(group)] = gains[np.ix_(group, group)].sum(axis=1)
    return Grouping(groups=ordered, value=float(each.sum()), gains=each)


def _improve_by_moves(
    gains: NDArray[np.float64],  # [target, source]
    label: NDArray[np.int64],  # [task], its group
    limits: GroupLimits,
) -> Grouping:
    """Tasks moved and exchanged between groups while that raises the worth."""
    both = gains + gains.T
    count = len(gains)
    largest, most = limits.resolved(count)
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
    return _grouping_of(gains, [np.flatnonzero(label == number) for number in np.unique(label)])
