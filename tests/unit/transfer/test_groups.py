from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.transfer import GroupLimits, group_exactly, group_greedily, group_spectrally
from taskmix.transfer._grouping import Grouping

Method = Callable[[NDArray[np.float64], GroupLimits | None], Grouping]


def spectrally(gains: NDArray[np.float64], limits: GroupLimits | None = None) -> Grouping:
    return group_spectrally(gains, limits, generator=np.random.default_rng(0))


METHODS: dict[str, Method] = {
    "exact": group_exactly,
    "greedy": group_greedily,
    "spectral": partial(spectrally),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


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


@every_method
def test_two_pairs_by_hand(method: Method) -> None:
    found = method(FOUR, None)
    assert found.groups == ((0, 1), (2, 3))
    assert found.value == 5.0
    assert found.gains.tolist() == [2.0, 1.0, 1.0, 1.0]
    assert found.named(["a", "b", "c", "d"]) == (("a", "b"), ("c", "d"))
    alone = method(FOUR, GroupLimits(largest=1))
    assert alone.groups == ((0,), (1,), (2,), (3,))
    assert alone.value == 0.0
    assert method(FOUR, GroupLimits(groups=1)).groups == ((0, 1, 2, 3),)


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


@every_method
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("tasks", [5, 6])
def test_every_method_keeps_the_limits_and_counts_right(
    method: Method, limits: GroupLimits, tasks: int
) -> None:
    for seed in range(5):
        gains = np.random.default_rng(seed).normal(size=(tasks, tasks))
        found = method(gains, limits)
        assert sorted(task for group in found.groups for task in group) == list(range(tasks))
        assert len(found.groups) <= (limits.groups or tasks)
        assert max(map(len, found.groups)) <= (limits.largest or tasks)
        assert found.value == pytest.approx(worth(gains, [list(group) for group in found.groups]))
        assert found.value <= best(gains, limits) + 1e-9


def test_the_quick_methods_come_near_the_exact_one() -> None:
    shares: dict[str, list[float]] = {"greedy": [], "spectral": []}
    for seed in range(30):
        gains = np.random.default_rng(seed).normal(size=(9, 9))
        limits = GroupLimits(largest=4)
        exact = group_exactly(gains, limits).value
        for name, values in shares.items():
            values.append(METHODS[name](gains, limits).value / exact)
    assert all(np.mean(values) > 0.93 for values in shares.values())


@every_method
def test_planted_groups_are_found_under_noise(method: Method) -> None:
    generator = np.random.default_rng(0)
    label = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])
    gains = np.where(label[:, None] == label, 1.0, -1.0) + 0.3 * generator.normal(size=(12, 12))
    found = method(gains, GroupLimits(largest=5))
    assert found.groups == ((0, 3, 6, 9), (1, 4, 7, 10), (2, 5, 8, 11))


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(6)), st.integers(0, 100))
def test_the_order_of_tasks_changes_no_group(order: list[int], seed: int) -> None:
    gains = np.random.default_rng(seed).normal(size=(6, 6))
    for method in (group_exactly, group_greedily):
        plain, turned = method(gains), method(gains[np.ix_(order, order)])
        back = {tuple(sorted(order[task] for task in group)) for group in turned.groups}
        assert back == set(plain.groups)


def test_where_every_pair_harms_tasks_stay_alone() -> None:
    for method in METHODS.values():
        assert len(method(np.full((6, 6), -1.0), None).groups) == 6
        assert len(method(np.zeros((6, 6)), GroupLimits(groups=2, largest=3)).groups) == 2


def test_groups_that_cannot_be_are_refused() -> None:
    with pytest.raises(OptionError, match="`largest` should be at least 1"):
        GroupLimits(largest=0)
    with pytest.raises(OptionError, match="6 tasks should fit into 2 groups of at most 2"):
        group_greedily(np.zeros((6, 6)), GroupLimits(largest=2, groups=2))
    with pytest.raises(OptionError, match=r"at most 13 tasks\. Found 14"):
        group_exactly(np.zeros((14, 14)))
    with pytest.raises(ShapeError, match=r"square\. Found shape"):
        group_greedily(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="known for every pair"):
        group_greedily(np.array([[np.nan, np.nan], [0.0, np.nan]]))
