"""Divisions by entropy, by learning curves, and by both; the slope as a reward."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from numpy.typing import NDArray
from simulated_logs import NAMES, learning_log

from taskmix.counterfactual import (
    Log,
    improve_policy,
    improve_stages,
    learning_curves,
    log_from_arrays,
    maximise,
)
from taskmix.counterfactual._improve import ENTROPY_GRID
from taskmix.counterfactual._slopes import (
    LEAST,
    curve_shares,
    half_curves,
    half_sums,
    slope_rewards,
)
from taskmix.errors import OptionError

THIRD = np.full(3, 1 / 3)


def saturated_log(seed: int, *, rows: int = 3000) -> Log:
    """Task a is hard and learns no more, task b is easy and still learns, task c is learned.

    The reward is what is missing, as in Eq. 16, and so the largest for task a.
    """
    generator = np.random.default_rng(seed)
    tasks = generator.integers(3, size=rows)
    visits = np.eye(3)[tasks].cumsum(axis=0)[np.arange(rows), tasks]
    level, rate = np.array([0.2, 0.4, 0.9]), np.array([0.0, 0.0003, 0.0])
    reached = level[tasks] + rate[tasks] * visits
    seen = np.clip(reached + 0.05 * generator.normal(size=rows), 0.01, 1.0)
    return log_from_arrays(tasks, 1 - seen, np.full(rows, 1 / 3), -np.log(seen), names=NAMES)


def test_shares_by_curves_are_those_of_equal_slopes() -> None:
    # By hand: a log v + b log w is the largest at shares in the ratio a to b.
    def curve(visits: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([0.1, 0.2, 0.3]) * np.log(visits)

    found = curve_shares(curve, budget=1000.0, task_count=3)
    np.testing.assert_allclose(found, [1 / 6, 2 / 6, 3 / 6], rtol=0.05)
    assert found.sum() == pytest.approx(1.0)


@settings(deadline=None, max_examples=30)
@given(
    rates=some.lists(some.floats(0.0, 1.0), min_size=2, max_size=4),
    scale=some.floats(10.0, 1000.0),
)
def test_shares_by_curves_are_as_good_as_any_on_a_grid(rates: list[float], scale: float) -> None:
    count, rising = len(rates), np.array(rates)

    def curve(visits: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1 - np.exp(-rising * visits / scale))

    found = curve_shares(curve, budget=300.0, task_count=count)
    assert found.sum() == pytest.approx(1.0)
    assert np.all(found >= LEAST / count - 1e-12)
    best = (
        max(
            float(curve(300.0 * np.array([*others, 1 - sum(others)])).mean())
            for others in product(np.linspace(LEAST / count, 1, 40), repeat=count - 1)
            if 1 - sum(others) >= LEAST / count
        )
        if count < 4
        else -np.inf
    )
    assert float(curve(300.0 * found).mean()) >= best - 2e-3


def test_both_is_the_mean_of_the_policy_and_of_the_shares_by_curves() -> None:
    log = saturated_log(0)
    entropy, curves, both = (
        improve_policy(log, division=each) for each in ("entropy", "curves", "both")
    )
    np.testing.assert_allclose(
        both.probabilities, (entropy.probabilities + curves.probabilities) / 2
    )
    np.testing.assert_array_equal(improve_policy(log).probabilities, both.probabilities)
    given = improve_policy(log, entropy=0.3)  # a λ is the paper's own policy
    assert (given.division, given.by_curves) == ("entropy", None)


def test_a_task_that_still_learns_gets_more_than_a_hard_one_that_does_not() -> None:
    for seed in range(5):
        log = saturated_log(seed)
        paper = improve_policy(log, entropy=0.3).probabilities
        assert paper[0] > paper[1]  # Eq. 16 asks for the hard one
        for found in (
            improve_policy(log, division="curves"),
            improve_policy(log),
            improve_policy(log, division="entropy", reward="slope"),
        ):
            assert found.probabilities[1] > 0.4
            assert found.performance > found.performance_before + found.performance_error


def test_where_nothing_is_to_be_gained_shares_stay_uniform() -> None:
    for seed in range(4):
        flat = learning_log(seed, rates=(0.0, 0.0, 0.0), noise=0.1)
        alike = learning_log(seed, rates=(3e-4, 3e-4, 3e-4), noise=0.1)
        for log in (flat, alike):
            for found in (improve_policy(log), improve_policy(log, reward="slope")):
                np.testing.assert_allclose(found.probabilities, THIRD, atol=0.03)
        entropy = improve_policy(flat, division="entropy").probabilities
        np.testing.assert_allclose(entropy, THIRD, atol=1e-3)


def test_the_reward_of_a_slope_is_what_a_share_more_would_add() -> None:
    log = learning_log(0, noise=0.0, rates=(3e-4, 1e-4, 2e-4))
    curves = learning_curves([log])
    visits = log.total.visits.astype(float)
    found, error = slope_rewards(curves, visits)
    # By hand: rates times 1,333 visits, seven eighths of them in the middle of the last quarter.
    expected = np.array([3e-4, 1e-4, 2e-4]) * 4000 / 3 * 7 / 8
    np.testing.assert_allclose(found, expected, rtol=0.06)
    assert np.all(error < 0.02)


def test_slopes_leave_the_weights_of_a_log_and_each_half_its_own() -> None:
    log = saturated_log(0)
    found = improve_policy(log, division="entropy", reward="slope", entropy=0.1)
    assert found.value.effective_rows <= log.rows
    even, odd = half_curves([log], learning_curves([log]))
    visits = log.rows * log.total.visits / log.total.visits.sum()
    rewards = [slope_rewards(half, visits)[0] for half in (even, odd)]
    low, high = np.min(rewards, axis=0), np.max(rewards, axis=0)
    assert float((found.probabilities * low).sum()) - 1e-9 <= found.value.value
    assert found.value.value <= float((found.probabilities * high).sum()) + 1e-9
    # One slope for the whole run: there is nothing for stages to find.
    assert len(improve_stages(log, reward="slope").begins) == 1


def test_unknown_words_and_logs_without_losses_are_told() -> None:
    log = saturated_log(0)
    with pytest.raises(OptionError, match="`division` should be among both, entropy, curves"):
        improve_policy(log, division="car")
    with pytest.raises(OptionError, match="`reward` should be among logged, slope"):
        improve_policy(log, reward="car")
    plain = log_from_arrays([0, 1] * 50, [1.0] * 100, [0.5] * 100, names=["a", "b"])
    with pytest.raises(OptionError, match="A division by learning curves should have the loss"):
        improve_policy(plain, entropy=0.2, division="both")
    with pytest.raises(OptionError, match='With `reward="slope"` the logs should have the loss'):
        improve_policy(plain, entropy=0.2, reward="slope")


def test_the_chosen_entropy_is_the_largest_of_those_that_end_best_by_the_other_half() -> None:
    log = learning_log(0)
    found = improve_policy(log)
    even, odd = half_curves([log], learning_curves([log]))

    def visits(weight: float) -> list[np.ndarray]:
        return [log.rows * maximise(half, weight).probabilities for half in half_sums([log])]

    def end(weight: float) -> float:
        pairs = zip((odd, even), visits(weight), strict=True)
        return sum(float(judge.at(taught).mean()) for judge, taught in pairs) / 2

    grid = np.ptp(log.total.means) * ENTROPY_GRID
    best = max(grid, key=end)

    def error(weight: float) -> float:
        pairs = zip((odd, even), visits(weight), visits(best), strict=True)
        return math.hypot(*(float(judge.difference_error(a, b)) for judge, a, b in pairs)) / 2

    tied = [weight for weight in grid if end(best) - end(weight) <= error(weight)]
    assert found.entropy == pytest.approx(max(tied))
