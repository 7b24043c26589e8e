"""What pages draw with: short names that stay different, and steps put into bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.report._charts import LINE, row_names
from taskmix.report._data import bin_edges, bin_of, binned_mean, divided, mean_over


@pytest.mark.parametrize("length", [40, 200])
def test_a_long_name_keeps_its_begin_and_its_end(length: int) -> None:
    first, second = ("begin " + "x" * length + end for end in (" in 2023", " in 2024"))
    shown = row_names([first, second])
    assert shown[first] != shown[second]
    assert shown[first].startswith("begin x")
    assert shown[first].endswith("in 2023")


@given(st.lists(st.text(min_size=1, max_size=90), max_size=30, unique=True))
def test_names_stay_different_and_have_two_lines_at_most(names: list[str]) -> None:
    shown = row_names(names)
    assert list(shown) == names
    assert len(set(shown.values())) == len(names)
    for words in shown.values():
        lines = words.split("\n")
        assert len(lines) <= 2
        assert all(len(line) <= LINE + 1 for line in lines)


@given(last=st.integers(1, 5000), points=st.integers(1, 300))
def test_every_step_falls_into_the_one_bin_whose_edges_enclose_it(last: int, points: int) -> None:
    edges = bin_edges(last, points)
    steps = np.arange(1, last + 1)
    bins = bin_of(steps, edges)
    assert len(edges) - 1 <= points
    assert (edges[bins] < steps).all()
    assert (steps <= edges[bins + 1]).all()
    assert set(bins.tolist()) == set(range(len(edges) - 1))  # none is empty


def test_steps_outside_the_edges_go_to_the_nearest_bin() -> None:
    assert bin_of(np.array([0, 11, 99]), bin_edges(10, 5)).tolist() == [0, 4, 4]


def test_a_bin_holds_the_mean_of_what_is_known_and_nan_where_nothing_is() -> None:
    values = np.array([1.0, 3.0, np.nan, 5.0])
    task, bins = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    found = binned_mean(values, task, bins, (2, 2))
    np.testing.assert_array_equal(found, [[2.0, np.nan], [np.nan, 5.0]])


def test_the_range_over_seeds_is_of_the_seeds_that_are_there() -> None:
    mean, low, high = mean_over(np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]]))
    np.testing.assert_array_equal(mean, [2.0, 5.0, np.nan])
    np.testing.assert_array_equal(low, [1.0, 5.0, np.nan])
    np.testing.assert_array_equal(high, [3.0, 5.0, np.nan])


def test_nothing_divided_by_nothing_is_not_a_number_and_no_warning() -> None:
    found = divided(np.array([[1.0, 0.0]]), np.array([2.0, 0.0]))
    np.testing.assert_array_equal(found, [[0.5, np.nan]])
