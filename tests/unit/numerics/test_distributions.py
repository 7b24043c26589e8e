from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taskmix.errors import OptionError
from taskmix.numerics import (
    as_distribution,
    entropy,
    log_softmax,
    log_sum_exp,
    mix_uniform,
    quantile_of_sorted,
    softmax,
)

logits = arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e6, 1e6))


def test_log_sum_exp_holds_sums_too_large_and_too_small_for_a_float() -> None:
    assert log_sum_exp(np.array([1000.0, 1000.0])) == pytest.approx(1000 + math.log(2))
    assert log_sum_exp(np.array([-1000.0, -1000.0])) == pytest.approx(-1000 + math.log(2))


@given(logits)
def test_softmax_is_a_distribution_and_log_softmax_its_logarithm(values: np.ndarray) -> None:
    probabilities = softmax(values)
    assert probabilities.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(log_softmax(values)), probabilities, atol=1e-15)
    assert np.all(np.isfinite(log_softmax(values)))


def test_entropy_is_that_of_a_fair_coin_and_of_a_certain_one() -> None:
    assert entropy(np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert entropy(np.array([1.0, 0.0])) == 0.0


def test_mixing_gives_every_task_its_share_of_the_uniform_part() -> None:
    np.testing.assert_allclose(mix_uniform(np.array([1.0, 0.0]), 0.1), [0.95, 0.05])


@given(arrays(np.float64, st.integers(1, 50), elements=st.floats(0.01, 100)))
def test_shares_that_are_one_together_are_left_alone_to_the_last_digit(values: np.ndarray) -> None:
    once = as_distribution(values / values.sum())
    np.testing.assert_array_equal(as_distribution(once), once)


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ([], "one number per task"),
        ([0.5, 0.6], "sum to one"),
        ([1.5, -0.5], "not negative"),
        ([math.nan, 1.0], "finite"),
        ([1.0, 0.0], "above zero"),
    ],
)
def test_what_is_no_distribution_is_refused_in_words(shares: list[float], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        as_distribution(shares, full_support=True)


@given(arrays(np.float64, st.integers(1, 50), elements=st.floats(-100, 100)), st.floats(0.0, 1.0))
def test_the_quantile_is_that_of_numpy(values: np.ndarray, share: float) -> None:
    expected = np.quantile(values, share)
    assert quantile_of_sorted(np.sort(values), share) == pytest.approx(expected, abs=1e-9)
