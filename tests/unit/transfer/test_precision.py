from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.transfer import (
    anchored_error,
    contrast_error,
    seed_noise,
    subsets_for_error,
)


def test_the_error_of_a_design_by_hand() -> None:
    # k = 25, size 5: q = 1/5, so 100 · 0.16 · 25/24 = 16.67, whose root is 4.082.
    assert contrast_error(1.0, sources=25, size=5, count=100) == pytest.approx(0.2449, abs=1e-4)
    assert subsets_for_error(1.0, sources=25, size=5, error=0.12) == 417
    # To see the noise at all takes one subset more than sources.
    assert subsets_for_error(0.001, sources=25, size=5, error=1.0) == 26


@pytest.mark.parametrize(("sources", "size"), [(5, 2), (6, 3), (7, 1)])
def test_the_formula_is_least_squares_of_a_complete_design(sources: int, size: int) -> None:
    every = np.array(
        [[i in some for i in range(sources)] for some in combinations(range(sources), size)], float
    )
    covariance = np.linalg.inv(every.T @ every)
    centre = np.eye(sources) - 1 / sources
    exact = np.sqrt((centre @ covariance @ centre)[0, 0])
    formula = contrast_error(1.0, sources=sources, size=size, count=len(every))
    assert exact == pytest.approx(formula * np.sqrt(1 - 1 / sources))
    # Anchored, the noise of f(∅) comes to every coefficient in the same way.
    shared = covariance @ every.sum(axis=0)
    total = np.sqrt(covariance[0, 0] + shared[0] ** 2 * 4.0 / 3)
    assert total == pytest.approx(
        anchored_error(
            1.0, sources=sources, size=size, count=len(every), single_runs=3, single_noise=2.0
        )
    )


@given(
    st.integers(3, 50),
    st.floats(0.01, 10),
    st.floats(0.001, 10),
    st.data(),
)
def test_the_number_of_subsets_is_the_least_that_reaches_the_error(
    sources: int, noise: float, error: float, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, sources - 1))
    needed = subsets_for_error(noise, sources=sources, size=size, error=error)
    reached = contrast_error(noise, sources=sources, size=size, count=needed)
    assert reached <= error * (1 + 1e-9)
    if needed > sources + 1:
        before = contrast_error(noise, sources=sources, size=size, count=needed - 1)
        assert before > error


def test_the_noise_of_a_pilot_is_pooled_over_its_subsets() -> None:
    # Squares about the means: 0.02 from one degree, 0.08 from two (the failed run left out).
    pilot = [[1.0, 1.2, np.nan], [2.0, 2.2, 1.8], [5.0, np.nan, np.nan]]
    assert seed_noise(pilot) == pytest.approx(np.sqrt(0.10 / 3))
    with pytest.raises(ShapeError, match="at least two finished runs"):
        seed_noise([[1.0, np.nan], [2.0, np.nan]])
    with pytest.raises(ShapeError, match="subset, seed"):
        seed_noise([1.0, 2.0])


def test_precision_that_cannot_be_is_refused() -> None:
    with pytest.raises(OptionError, match="`error` should be a number above zero"):
        subsets_for_error(1.0, sources=5, size=2, error=0.0)
    with pytest.raises(OptionError, match="`noise`"):
        contrast_error(float("nan"), sources=5, size=2, count=10)
    with pytest.raises(InputError, match="at least 3"):
        contrast_error(1.0, sources=2, size=1, count=10)
    with pytest.raises(OptionError, match="`size`"):
        contrast_error(1.0, sources=5, size=5, count=10)
    with pytest.raises(OptionError, match="`single_runs`"):
        anchored_error(1.0, sources=5, size=2, count=10, single_runs=0)
