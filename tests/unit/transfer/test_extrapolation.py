from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from simulated_subsets import simulated, table
from sklearn.metrics import f1_score, r2_score

from taskmix.errors import InputError, OptionError
from taskmix.transfer import (
    SubsetOutcomes,
    all_size_subsets,
    extrapolate,
    fit_linear_surrogate,
    hold_out_sizes,
)

EFFECTS = np.array([-0.3, -0.2, -0.1, 0.1, 0.2, 0.3])


@dataclass(frozen=True)
class Given:
    """A surrogate that predicts what it was told to."""

    values: NDArray[np.float64]
    target: str = "target"
    sources: tuple[str, ...] = ()
    anchor: float = 1.0

    def predict(self, subsets: ArrayLike) -> NDArray[np.float64]:
        return self.values


def all_sizes(seed: int, *, noise: float = 0.05) -> SubsetOutcomes:
    generator = np.random.default_rng(seed)
    subsets = all_size_subsets(6, 50, generator=generator)
    losses = 1 + subsets @ EFFECTS + noise * generator.normal(size=50)
    return table(subsets, losses, alone=[1.0] * 3)


def test_four_held_out_subsets_by_hand() -> None:
    subsets = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], dtype=bool)
    given = table(subsets, np.array([0.8, 0.9, 1.1, 1.2, 5.0]), alone=[1.0])
    held = np.array([True, True, True, True, False])
    said = Given(np.array([0.7, 1.1, 1.0, 1.3]))
    found = extrapolate(given, lambda _: said, held, generator=np.random.default_rng(0))
    # Ranks 1 2 3 4 against 1 3 2 4: 1 - 6 · 2 / (4 · 15) = 0.8.
    assert found.spearman.mean == pytest.approx(0.8)
    # Squares 0.01 + 0.04 + 0.01 + 0.01 of 0.04 + 0.01 + 0.01 + 0.04.
    assert found.r_squared.mean == pytest.approx(0.3)
    # Two subsets help; one of them is said to, and 1.0 is no help: precision 1, recall 1/2.
    assert found.f1_positive.mean == pytest.approx(2 / 3)
    assert found.f1_negative.mean == pytest.approx(0.8)
    assert found.positive_share == 0.5


def test_the_figures_are_those_of_scipy_and_scikit_learn() -> None:
    given = all_sizes(0, noise=0.3)
    held = np.random.default_rng(1).permutation(50) < 15
    found = extrapolate(
        given, fit_linear_surrogate, held, generator=np.random.default_rng(2), resamples=200
    )
    observed, predicted = found.observed, found.predicted
    assert found.spearman.mean == pytest.approx(stats.spearmanr(observed, predicted).statistic)
    assert found.r_squared.mean == pytest.approx(r2_score(observed, predicted))
    helped, hoped = observed < given.anchor, predicted < given.anchor
    assert found.f1_positive.mean == pytest.approx(f1_score(helped, hoped))
    assert found.f1_negative.mean == pytest.approx(f1_score(~helped, ~hoped))
    drawn = np.random.default_rng(2).integers(len(observed), size=(200, len(observed)))
    slow = [r2_score(observed[row], predicted[row]) for row in drawn]
    low, high = np.quantile(slow, [0.025, 0.975])
    assert (found.r_squared.low, found.r_squared.high) == pytest.approx((low, high))


def test_a_figure_that_is_not_defined_is_not_a_number() -> None:
    given = simulated(np.random.default_rng(0), effects=np.full(6, 0.5), noise=0.01)
    held = np.arange(len(given.losses)) % 2 == 0
    found = extrapolate(given, fit_linear_surrogate, held, generator=np.random.default_rng(0))
    assert found.positive_share == 0
    assert np.isnan(found.f1_positive.mean)
    assert found.f1_negative.mean == 1.0
    flat = extrapolate(
        given,
        lambda _: Given(np.ones(int(held.sum()))),
        held,
        generator=np.random.default_rng(0),
    )
    assert np.isnan(flat.spearman.mean)


def test_tests_that_cannot_be_are_refused() -> None:
    given, generator = all_sizes(0), np.random.default_rng(0)
    with pytest.raises(InputError, match="Found the sizes"):
        hold_out_sizes(given, [9])
    for held in (np.zeros(50, bool), np.ones(50, bool), np.arange(50) < 2, np.ones(3, bool)):
        with pytest.raises(InputError, match="should be held out"):
            extrapolate(given, fit_linear_surrogate, held, generator=generator)
    half = np.arange(50) % 2 == 0
    with pytest.raises(OptionError, match="`resamples`"):
        extrapolate(given, fit_linear_surrogate, half, generator=generator, resamples=0)
