"""Rank correlations with intervals, and how reliable ranks are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from taskmix.mixtures._scales._ranks import (
    correlate_ranks,
    rank_reliability,
)

VALUES = st.integers(-50, 50).map(float)


@given(arrays(float, (2, 9), elements=VALUES))
def test_it_is_spearmans_and_lies_within_its_interval(columns: np.ndarray) -> None:
    left, right = columns
    random = np.random.default_rng(0)
    found = correlate_ranks(left, right, level=0.9, resamples=50, random=random)
    if left.std() > 0 and right.std() > 0:
        assert found.value == pytest.approx(spearmanr(left, right).statistic)
    assert -1 <= found.low <= found.value <= found.high <= 1


def test_five_mixtures_in_the_same_order_are_no_proof() -> None:
    order = np.arange(5.0)
    random = np.random.default_rng(0)
    found = correlate_ranks(order, order, level=0.9, resamples=200, random=random)
    assert found.value == 1
    assert found.low < 0.6


@pytest.mark.parametrize("correlation", [0.0, 0.8, 0.95])
def test_an_interval_of_90_percent_has_the_truth_in_it_about_as_often(correlation: float) -> None:
    random = np.random.default_rng(3)
    truth = 6 / np.pi * np.arcsin(correlation / 2)  # of ranks, for normal variables
    hits = 0
    for _ in range(150):
        left, other = random.standard_normal((2, 20))
        right = correlation * left + np.sqrt(1 - correlation**2) * other
        found = correlate_ranks(left, right, level=0.9, resamples=100, random=random)
        hits += found.low <= truth <= found.high
    assert 0.84 <= hits / 150 <= 0.995


def test_a_third_of_noise_leaves_two_thirds_of_reliability() -> None:
    values = np.random.default_rng(5).standard_normal(400)
    assert rank_reliability(values, 0.0) == 1.0
    assert rank_reliability(values, values.var() / 3) == pytest.approx(2 / 3, abs=0.06)
    assert rank_reliability(values, 2 * values.var()) == 0.0
    assert rank_reliability(values, values.var(), is_forecast=True) == pytest.approx(0.5, abs=0.06)
    assert np.isnan(rank_reliability(values, np.nan))
