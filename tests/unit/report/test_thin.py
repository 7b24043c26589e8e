from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from taskmix.report._study._thin import (
    bin_edges,
    bin_of,
    binned_mean,
    carry_forward,
    divided,
    mean_over,
)


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


def test_a_gap_takes_the_last_number_before_it() -> None:
    values = np.array([[np.nan, 1.0, np.nan, 3.0, np.nan], [2.0, np.nan, np.nan, np.nan, 4.0]])
    np.testing.assert_array_equal(
        carry_forward(values), [[np.nan, 1.0, 1.0, 3.0, 3.0], [2.0, 2.0, 2.0, 2.0, 4.0]]
    )


def test_the_range_over_seeds_is_of_the_seeds_that_are_there() -> None:
    mean, low, high = mean_over(np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]]))
    np.testing.assert_array_equal(mean, [2.0, 5.0, np.nan])
    np.testing.assert_array_equal(low, [1.0, 5.0, np.nan])
    np.testing.assert_array_equal(high, [3.0, 5.0, np.nan])


def test_nothing_divided_by_nothing_is_not_a_number_and_no_warning() -> None:
    found = divided(np.array([[1.0, 0.0]]), np.array([2.0, 0.0]))
    np.testing.assert_array_equal(found, [[0.5, np.nan]])
