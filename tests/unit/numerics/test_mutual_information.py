from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.numerics import adjusted_mutual_information, expected_mutual_information

labellings = st.integers(2, 60).flatmap(
    lambda rows: st.tuples(
        st.lists(st.integers(0, 5), min_size=rows, max_size=rows),
        st.lists(st.integers(0, 4), min_size=rows, max_size=rows),
    )
)


def information(first: tuple[int, ...], second: tuple[int, ...]) -> float:
    """By the definition, in plain loops."""
    total = 0.0
    for a in set(first):
        for b in set(second):
            joint = sum(x == a and y == b for x, y in zip(first, second, strict=True)) / len(first)
            if joint:
                total += joint * math.log(
                    joint / (first.count(a) * second.count(b)) * len(first) ** 2
                )
    return total


def test_a_value_worked_out_by_hand() -> None:
    # Two classes of two rows each, crossed: I = 0, H = log 2, and of the six ways to permute one
    # labelling two have I = log 2 and four have I = 0, so E = log(2) / 3 and AMI = -1/3 / (2/3).
    assert adjusted_mutual_information([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0, 1, 1, 2), (0, 1, 1, 0, 1)),
        ((0, 1, 2, 0, 1, 1), (0, 0, 0, 1, 1, 2)),
        ((0, 0, 0, 1), (1, 0, 0, 0)),
    ],
)
def test_the_expectation_is_that_over_all_permutations(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    mean = np.mean([information(first, order) for order in permutations(second)])
    counts = [np.bincount(np.array(each)) for each in (first, second)]
    assert expected_mutual_information(*counts) == pytest.approx(mean, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(labellings)
def test_it_is_scikit_learns_with_the_largest_entropy(pair: tuple[list[int], list[int]]) -> None:
    from sklearn.metrics import adjusted_mutual_info_score

    wanted = adjusted_mutual_info_score(*pair, average_method="max")
    assert adjusted_mutual_information(*pair) == pytest.approx(wanted, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(labellings, st.permutations(range(6)))
def test_names_of_classes_and_the_order_of_the_two_do_not_matter(
    pair: tuple[list[int], list[int]], names: list[int]
) -> None:
    first, second = pair
    value = adjusted_mutual_information(first, second)
    renamed = [names[label] for label in first]
    assert adjusted_mutual_information(renamed, second) == pytest.approx(value, abs=1e-9)
    assert adjusted_mutual_information(second, first) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("rows", "classes"), [(2000, 300), (100_000, 9), (50, 50), (5000, 2), (300, 299)]
)
def test_large_and_fine_labellings_agree_with_scikit_learn(rows: int, classes: int) -> None:
    from sklearn.metrics import adjusted_mutual_info_score

    generator = np.random.default_rng(rows)
    first = generator.integers(0, classes, rows)
    second = np.where(generator.random(rows) < 0.6, first, generator.integers(0, classes, rows))
    wanted = adjusted_mutual_info_score(first, second, average_method="max")
    assert adjusted_mutual_information(first, second) == pytest.approx(wanted, abs=1e-9)


def test_a_copy_has_one_and_one_class_alone_has_nothing_to_tell() -> None:
    assert adjusted_mutual_information([3, 1, 1, 2], [0, 5, 5, 9]) == pytest.approx(1.0)
    assert adjusted_mutual_information([1, 1, 1], [2, 2, 2]) == 1.0
    assert adjusted_mutual_information([1, 1, 1, 1], [0, 0, 1, 1]) == pytest.approx(0.0)
