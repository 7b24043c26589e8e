"""Learning curves of logs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from simulated_logs import NAMES, learning_log

from taskmix.counterfactual import Log, improve_policy, learning_curves, log_from_arrays
from taskmix.errors import InputError

EVEN = np.full(3, 4000 / 3)


def flat_log(seed: int, *, rows: int = 1000, noise: float = 0.1) -> Log:
    """Three tasks that stay where they are, at 0.3, 0.5 and 0.7."""
    generator = np.random.default_rng(seed)
    tasks = generator.integers(3, size=rows)
    seen = np.array([0.3, 0.5, 0.7])[tasks] + noise * generator.normal(size=rows)
    losses = -np.log(np.clip(seen, 0.01, 1.0))
    return log_from_arrays(tasks, generator.random(rows), np.full(rows, 1 / 3), losses, names=NAMES)


def test_a_curve_follows_performance_and_goes_on_with_the_logarithm() -> None:
    curves = learning_curves([learning_log(0, noise=0.0)])
    # Task b gains 0.0003 a visit from 0.05 on, over 1,333 visits.
    np.testing.assert_allclose(
        curves.at(np.array([[100.0, 200.0, 300.0], [100.0, 1000.0, 0.0]]))[:, 1],
        [0.11, 0.35],
        atol=0.02,
    )
    last = float(curves.shape.visits[1, -1])
    end, twice, four = (float(curves.at(np.full(3, v * last))[1]) for v in (1, 2, 4))
    assert twice - end == pytest.approx(four - twice)  # as much for every doubling
    assert twice - end == pytest.approx(curves.shape.slope[1] * np.log(2))
    # By hand: at 1,333 visits 0.0003 each are 0.4 for e times the visits.
    assert curves.shape.slope[1] == pytest.approx(0.4, rel=0.15)
    assert float(curves.at(np.full(3, 1e9))[1]) == 1.0  # but never above one


def test_logs_are_pooled_by_visits_whatever_their_number() -> None:
    logs = [learning_log(seed) for seed in range(10)]
    one, ten = learning_curves(logs[:1]), learning_curves(logs)
    # Ten runs of 1,333 visits are no run of 13,330: the curves end where one run does.
    np.testing.assert_allclose(ten.shape.visits[:, -1], one.shape.visits[:, -1], rtol=0.1)
    np.testing.assert_allclose(ten.at(EVEN), one.at(EVEN), atol=0.02)


def test_a_task_that_a_later_log_left_out_keeps_the_curve_of_the_earlier_one() -> None:
    first, second = learning_log(0), learning_log(1, shares=(0.5, 0.5, 0.0))
    alone, both = learning_curves([first]), learning_curves([first, second])
    for visits in (0.0, 50.0, 700.0, 1300.0):
        expected, found = (curves.at(np.full(3, visits))[2] for curves in (alone, both))
        assert found == pytest.approx(expected, abs=0.01)
    assert improve_policy([first, second]).probabilities[2] > 0
    with pytest.raises(InputError, match="no row of task 2"):
        learning_curves([second])


def test_the_noise_of_a_curve_is_that_of_its_rows_and_not_of_its_rise() -> None:
    still = learning_curves([learning_log(0, rates=(0.0, 0.0, 0.0), noise=0.02)])
    # Cut off at 0.01, two standard deviations below.
    np.testing.assert_allclose(still.noise, 0.02, rtol=0.15)
    rising = learning_curves([learning_log(0, rates=(0.0006, 0.0003, 0.0005), noise=0.02)])
    np.testing.assert_allclose(rising.noise, 0.02, rtol=0.1)
    assert still.difference_error(EVEN, EVEN) == 0


@pytest.mark.parametrize("count", [1, 3, 10, pytest.param(30, marks=pytest.mark.slow)])
def test_the_error_of_a_difference_is_its_spread_over_sets_of_logs(count: int) -> None:
    """Rows of L logs were once taken for one run of all rows: too small by 27 for ten logs."""
    found, claimed = [], []
    for draw in range(30):
        logs = [
            learning_log(1000 * draw + k, rows=1500, rates=(3e-4, 2e-4, 4e-4), noise=0.1)
            for k in range(count)
        ]
        curves = learning_curves(logs)
        visits, others = np.array([700.0, 400.0, 400.0]), np.full(3, 500.0)
        found.append(float((curves.at(visits) - curves.at(others)).mean()))
        claimed.append(float(curves.difference_error(visits, others)))
    ratio = np.std(found) / np.sqrt(np.mean(np.square(claimed)))
    assert 0.5 < ratio < 1.7


@pytest.mark.parametrize("count", [1, 3, 10])
def test_tasks_that_learn_nothing_are_not_predicted_to_gain(count: int) -> None:
    gains = []
    for draw in range(20):
        curves = learning_curves([flat_log(100 * draw + k) for k in range(count)])
        even, more = np.full(3, 1000 / 3), np.array([600.0, 200.0, 200.0])
        # The most that any of three such divisions would gain.
        tried = [np.roll(more, place) for place in range(3)]
        gains.append(max(float((curves.at(v) - curves.at(even)).mean()) for v in tried))
    assert np.mean(gains) < 0.003


@settings(deadline=None, max_examples=25)
@given(
    seed=some.integers(0, 1000),
    rows=some.integers(30, 400),
    count=some.integers(1, 3),
    tasks=some.integers(1, 5),
)
def test_a_curve_never_falls_and_stays_within_zero_and_one(
    seed: int, rows: int, count: int, tasks: int
) -> None:
    generator = np.random.default_rng(seed)
    names = [str(task) for task in range(tasks)]
    logs = []
    for _ in range(count):
        chosen = np.concatenate([np.arange(tasks), generator.integers(tasks, size=rows)])
        ones = np.ones(len(chosen))
        losses = generator.exponential(size=len(chosen))
        logs.append(log_from_arrays(chosen, ones, ones / tasks, losses, names=names))
    curves = learning_curves(logs)
    reached = curves.at(np.repeat(np.linspace(0, 5 * rows, 60)[:, None], tasks, axis=1))
    assert np.all(np.diff(reached, axis=0) >= -1e-12)
    assert np.all((reached >= 0) & (reached <= 1))
