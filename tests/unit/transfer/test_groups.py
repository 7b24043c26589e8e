from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.transfer import GroupLimits, group_exactly, group_tasks


def partitions(tasks: list[int]) -> Iterator[list[list[int]]]:
    """Every way to divide tasks into groups."""
    if not tasks:
        yield []
        return
    first, *rest = tasks
    for partition in partitions(rest):
        yield [[first], *partition]
        for place in range(len(partition)):
            yield [
                *partition[:place],
                [first, *partition[place]],
                *partition[place + 1 :],
            ]


def worth(gains: NDArray[np.float64], partition: list[list[int]]) -> float:
    return float(sum(gains[i, j] for group in partition for i in group for j in group if i != j))


def best(gains: NDArray[np.float64], limits: GroupLimits) -> float:
    count = len(gains)
    return max(
        worth(gains, partition)
        for partition in partitions(list(range(count)))
        if len(partition) <= (limits.groups or count)
        and max(map(len, partition)) <= (limits.largest or count)
    )


# Tasks 0 and 1 help each other by 2 and 1, 2 and 3 by 1 each; all other pairs harm by 1 each way.
FOUR = np.full((4, 4), -1.0)
FOUR[0, 1], FOUR[1, 0], FOUR[2, 3], FOUR[3, 2] = 2.0, 1.0, 1.0, 1.0


def test_two_pairs_by_hand() -> None:
    found = group_tasks(FOUR)
    assert found.groups == ((0, 1), (2, 3))
    assert found.value == 5.0
    assert found.gains.tolist() == [2.0, 1.0, 1.0, 1.0]
    assert found.named(["a", "b", "c", "d"]) == (("a", "b"), ("c", "d"))
    alone = group_tasks(FOUR, GroupLimits(largest=1))
    assert alone.groups == ((0,), (1,), (2,), (3,))
    assert alone.value == 0.0
    assert group_tasks(FOUR, GroupLimits(groups=1)).groups == ((0, 1, 2, 3),)


LIMITS = [
    GroupLimits(),
    GroupLimits(largest=2),
    GroupLimits(groups=2),
    GroupLimits(largest=3, groups=2),
    GroupLimits(largest=4, groups=3),
]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_the_exact_groups_are_the_best_of_all_partitions(limits: GroupLimits, seed: int) -> None:
    gains = np.random.default_rng(seed).normal(size=(6, 6))
    assert group_exactly(gains, limits).value == pytest.approx(best(gains, limits))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("largest", [None, 3])
def test_more_tasks_than_can_be_grouped_exactly_get_the_best_groups(
    seed: int, largest: int | None
) -> None:
    # Two sets of tasks that harm each other: the best groups of all are those of each set.
    generator = np.random.default_rng(seed)
    gains, limits = np.full((18, 18), -10.0), GroupLimits(largest=largest)
    gains[:9, :9], gains[9:, 9:] = generator.normal(size=(2, 9, 9))
    one, other = (group_exactly(part, limits) for part in (gains[:9, :9], gains[9:, 9:]))
    found = group_tasks(gains, limits)
    assert found.value == pytest.approx(one.value + other.value)
    assert found.groups == (*one.groups, *(tuple(9 + n for n in group) for group in other.groups))


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("tasks", [6, 20])
def test_groups_keep_the_limits_and_count_right(limits: GroupLimits, tasks: int) -> None:
    if limits.largest and limits.groups:
        limits = GroupLimits(largest=-(-tasks // limits.groups), groups=limits.groups)
    gains = np.random.default_rng(tasks).normal(size=(tasks, tasks))
    found = group_tasks(gains, limits)
    assert sorted(task for group in found.groups for task in group) == list(range(tasks))
    assert len(found.groups) <= (limits.groups or tasks)
    assert max(map(len, found.groups)) <= (limits.largest or tasks)
    assert found.value == pytest.approx(worth(gains, [list(group) for group in found.groups]))


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(6)), st.integers(0, 100))
def test_the_order_of_tasks_changes_no_group(order: list[int], seed: int) -> None:
    gains = np.random.default_rng(seed).normal(size=(6, 6))
    turned = group_tasks(gains[np.ix_(order, order)])
    back = {tuple(sorted(order[task] for task in group)) for group in turned.groups}
    assert back == set(group_tasks(gains).groups)


def test_groups_that_cannot_be_are_refused() -> None:
    with pytest.raises(OptionError, match="`largest` should be at least 1"):
        GroupLimits(largest=0)
    with pytest.raises(OptionError, match="6 tasks should fit into 2 groups of at most 2"):
        group_tasks(np.zeros((6, 6)), GroupLimits(largest=2, groups=2))
    with pytest.raises(OptionError, match=r"at most 13 tasks\. Found 14"):
        group_exactly(np.zeros((14, 14)))
    with pytest.raises(ShapeError, match=r"square\. Found shape"):
        group_tasks(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="known for every pair"):
        group_tasks(np.array([[np.nan, np.nan], [0.0, np.nan]]))
