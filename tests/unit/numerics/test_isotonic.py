from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from taskmix.numerics import isotonic


def test_neighbours_in_the_wrong_order_share_their_weighted_mean() -> None:
    found = isotonic(np.array([1.0, 4.0, 1.0, 5.0]), np.array([1.0, 1.0, 2.0, 1.0]))
    np.testing.assert_allclose(found, [1.0, 2.0, 2.0, 5.0])


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_the_curve_is_that_of_scikit_learn(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    values, weights = generator.normal(size=count), generator.uniform(0.1, 3.0, count)
    expected = isotonic_regression(values, sample_weight=weights)
    np.testing.assert_allclose(isotonic(values, weights), expected, atol=1e-9)


def test_leading_axes_are_curves_of_their_own() -> None:
    generator = np.random.default_rng(0)
    values, weights = generator.normal(size=(3, 4, 10)), generator.uniform(0.5, 1.0, (3, 4, 10))
    together = isotonic(values, weights)
    for place in np.ndindex(3, 4):
        np.testing.assert_allclose(together[place], isotonic(values[place], weights[place]))
