"""Logs of several loggers pooled by their mixture."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from taskmix.counterfactual import (
    LogStatistics,
    balanced,
    estimate,
    importance_sampling,
    maximise,
    sum_log,
)
from taskmix.errors import InputError, ShapeError

SHARES = np.array([[0.9, 0.05, 0.05], [0.1, 0.3, 0.6]])
MEANS = np.array([0.2, 0.5, 0.9])


def drawn(
    shares: np.ndarray, rows: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tasks = generator.choice(3, size=rows, p=shares)
    rewards = (generator.random(rows) < MEANS[tasks]).astype(float)
    return tasks, rewards, shares[tasks]


def two_logs(generator: np.random.Generator) -> list[LogStatistics]:
    pairs = zip(SHARES, (60, 180), strict=True)
    return [sum_log(*drawn(shares, rows, generator), task_count=3) for shares, rows in pairs]


def test_a_value_by_hand() -> None:
    # Loggers (0.5, 0.5) and (0.25, 0.75) with two rows each: the mixture is (0.375, 0.625).
    one = sum_log([0, 1], [1.0, 2.0], [0.5, 0.5], task_count=2)
    other = sum_log([0, 1], [3.0, 4.0], [0.25, 0.75], task_count=2)
    found = estimate(balanced([one, other]), [0.5, 0.5], estimator=importance_sampling)
    assert found.value == pytest.approx((0.5 * (1 + 3) / 0.375 + 0.5 * (2 + 4) / 0.625) / 4)
    plain = estimate(one + other, [0.5, 0.5], estimator=importance_sampling)
    assert plain.value == pytest.approx((1 + 2 + 0.5 * 3 / 0.25 + 0.5 * 4 / 0.75) / 4)


def test_sums_are_those_of_rows_whose_probability_is_the_mixtures() -> None:
    generator = np.random.default_rng(0)
    rows = [
        drawn(shares, count, generator) for shares, count in zip(SHARES, (60, 180), strict=True)
    ]
    tasks, rewards = (np.concatenate([each[k] for each in rows]) for k in (0, 1))
    mixture = (60 * SHARES[0] + 180 * SHARES[1]) / 240
    expected = sum_log(tasks, rewards, mixture[tasks], task_count=3)
    found = balanced([sum_log(*each, task_count=3) for each in rows], shares=SHARES)
    for name in LogStatistics.__dataclass_fields__:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name)
    assert maximise(found, 0.2).probabilities.argmax() == 2


@settings(deadline=None, max_examples=40)
@given(
    shares=some.lists(
        some.lists(some.floats(0.05, 1.0), min_size=3, max_size=3), min_size=1, max_size=4
    ),
    wanted=some.lists(some.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda w: sum(w) > 0.1),
    rows=some.lists(some.integers(1, 1000), min_size=4, max_size=4),
)
def test_the_variance_of_one_row_is_never_above_that_of_the_sum(
    shares: list[list[float]], wanted: list[float], rows: list[int]
) -> None:
    """Exactly, by the second moments of p r/π of every logger."""
    loggers = np.array(shares) / np.sum(shares, axis=1, keepdims=True)
    policy, counts = np.array(wanted) / sum(wanted), np.array(rows[: len(shares)], dtype=float)
    mixture = counts @ loggers / counts.sum()

    def variance(drawn_as: np.ndarray) -> float:  # [log, task], what rows are weighted by
        second = (loggers * (policy / drawn_as) ** 2 * MEANS).sum(axis=1)
        first = (loggers * (policy / drawn_as) * MEANS).sum(axis=1)
        return float((counts * (second - first**2)).sum())

    assert variance(np.broadcast_to(mixture, loggers.shape)) <= variance(loggers) * (1 + 1e-9)


def test_loggers_that_changed_and_wrong_shares_are_told() -> None:
    logs = two_logs(np.random.default_rng(3))
    changing = sum_log([0, 0, 1, 2], [1.0] * 4, [0.5, 0.4, 0.2, 0.2], task_count=3)
    with pytest.raises(InputError, match="kept to their shares"):
        balanced([logs[0], changing])
    with pytest.raises(ShapeError, match="a row for each log"):
        balanced(logs, shares=SHARES[0])
    with pytest.raises(InputError, match="what the logs were drawn with"):
        balanced(logs, shares=SHARES[::-1])
    with pytest.raises(InputError, match="at least one log"):
        balanced([])
