from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError, ShapeError
from taskmix.transfer import (
    anchored_error,
    balanced_subsets,
    contrast_error,
    fixed_size_subsets,
    seed_noise,
    subsets_for_error,
)


def test_the_error_of_a_design_by_hand() -> None:
    # k = 25, size 5: q = 1/5, so 100 · 0.16 · 25/24 = 16.67, whose root is 4.082.
    assert contrast_error(1.0, sources=25, size=5, count=125) == pytest.approx(0.2449, abs=1e-4)
    assert contrast_error(1.0, sources=25, size=5, count=100, complete=True) == pytest.approx(
        0.2449, abs=1e-4
    )
    # 1 / (0.12² · 0.16 · 25/24) = 416.7, beside the 25 that the coefficients take.
    assert subsets_for_error(1.0, sources=25, size=5, error=0.12) == 442
    # To see the noise at all takes one subset more than sources.
    assert subsets_for_error(0.001, sources=25, size=5, error=1.0) == 26


@pytest.mark.parametrize("draw", [fixed_size_subsets, balanced_subsets])
@pytest.mark.parametrize("size", [3, 12])
@pytest.mark.parametrize("count", [75, 200])
def test_random_designs_have_the_error_the_formula_says(
    draw: Callable[..., NDArray[np.bool_]], size: int, count: int
) -> None:
    generator, centre = np.random.default_rng(0), np.eye(25) - 1 / 25
    squares = []
    for _ in range(10):
        design = draw(25, size, count, generator=generator).astype(float)
        squares.append(np.diag(centre @ np.linalg.inv(design.T @ design) @ centre).mean())
    formula = contrast_error(1.0, sources=25, size=size, count=count)
    # A balanced design does a little better than one at random, most of all a small one.
    assert 0.9 * formula < np.sqrt(np.mean(squares)) < 1.01 * formula


@pytest.mark.parametrize(("sources", "size"), [(5, 2), (6, 3), (7, 1)])
def test_the_formula_is_least_squares_of_a_complete_design(sources: int, size: int) -> None:
    every = np.array(
        [[i in some for i in range(sources)] for some in combinations(range(sources), size)], float
    )
    covariance = np.linalg.inv(every.T @ every)
    centre = np.eye(sources) - 1 / sources
    exact = np.sqrt((centre @ covariance @ centre)[0, 0])
    formula = contrast_error(1.0, sources=sources, size=size, count=len(every), complete=True)
    assert exact == pytest.approx(formula * np.sqrt(1 - 1 / sources))
    # Anchored, the noise of f(∅) comes to every coefficient in the same way.
    shared = covariance @ every.sum(axis=0)
    total = np.sqrt(covariance[0, 0] + shared[0] ** 2 * 4.0 / 3)
    assert total == pytest.approx(
        anchored_error(
            1.0,
            sources=sources,
            size=size,
            count=len(every),
            single_runs=3,
            single_noise=2.0,
            complete=True,
        )
    )


@settings(deadline=None)
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
    with pytest.raises(OptionError, match="above the number of sources, 5"):
        contrast_error(1.0, sources=5, size=2, count=5)
    with pytest.raises(OptionError, match="`single_runs`"):
        anchored_error(1.0, sources=5, size=2, count=10, single_runs=0)
