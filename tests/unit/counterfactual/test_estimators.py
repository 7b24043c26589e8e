from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from simulated_logs import simulate

from taskmix.counterfactual import (
    Estimator,
    bernstein,
    compare,
    doubly_robust,
    estimate,
    hajek,
    importance_sampling,
    row_value,
    sum_log,
    weighted_importance_sampling,
)
from taskmix.errors import InputError, OptionError, ShapeError

ESTIMATORS: dict[str, Estimator] = {
    "importance sampling": importance_sampling,
    "weighted importance sampling": weighted_importance_sampling,
    "hajek": hajek,
    "doubly robust": doubly_robust,
    "doubly robust, given constants": partial(doubly_robust, baseline=np.full(5, 0.5)),
}
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
POLICY = np.array([0.1, 0.4, 0.2, 0.05, 0.25])
OTHER = np.array([0.3, 0.1, 0.2, 0.2, 0.2])

# Task 0 twice with probability 1/2 and rewards 1 and 0, task 1 twice with 1/2 and rewards 1 and 1.
FOUR = sum_log([0, 0, 1, 1], [1.0, 0.0, 1.0, 1.0], [0.5] * 4, task_count=2)


def test_four_rows_by_hand() -> None:
    # The policy (1/4, 3/4) has the weights 1/2, 1/2, 3/2, 3/2, of sum 4 and sum of squares 5.
    policy = [0.25, 0.75]
    found = estimate(FOUR, policy, estimator=importance_sampling)
    assert found.value == pytest.approx((0.5 + 1.5 + 1.5) / 4)
    assert found.effective_rows == pytest.approx(16 / 5)
    assert found.largest_weight == pytest.approx(1.5)
    assert found.weight_mean == pytest.approx(1.0)
    # Terms 0.5, 0, 1.5, 1.5: their variance is 0.5625, that of their mean a quarter of it.
    assert found.standard_error == pytest.approx(np.sqrt(0.5625 / 4))
    assert estimate(FOUR, policy).value == pytest.approx(3.5 / 4)
    assert estimate(FOUR, policy, estimator=hajek).value == pytest.approx(0.25 * 0.5 + 0.75)


def test_weighted_importance_sampling_is_at_the_level_of_the_rewards() -> None:
    # A constant added to every reward moves it by just that; plain sampling by the mean weight.
    log = simulate(np.random.default_rng(0))
    plain = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    raised = sum_log(log.tasks, log.rewards + 7, log.probabilities, task_count=5)
    for estimator in (weighted_importance_sampling, hajek):
        one = estimate(plain, POLICY, estimator=estimator)
        other = estimate(raised, POLICY, estimator=estimator)
        assert other.value - one.value == pytest.approx(7)
        assert other.standard_error == pytest.approx(float(one.standard_error))
    moved = estimate(raised, POLICY, estimator=importance_sampling)
    one = estimate(plain, POLICY, estimator=importance_sampling)
    assert moved.value - one.value == pytest.approx(7 * float(one.weight_mean))


def test_doubly_robust_with_the_hajek_means_is_hajek() -> None:
    log = simulate(np.random.default_rng(1))
    found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    same = estimate(found, POLICY, estimator=partial(doubly_robust, baseline=found.means))
    assert same.value == pytest.approx(float(estimate(found, POLICY, estimator=hajek).value))


@every_estimator
def test_many_policies_at_once_are_each_alone(estimator: Estimator) -> None:
    log = simulate(np.random.default_rng(2))
    found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    policies = np.random.default_rng(3).dirichlet(np.ones(5), size=(3, 4))
    together = estimate(found, policies, estimator=estimator)
    assert together.value.shape == (3, 4)
    for place in np.ndindex(3, 4):
        alone = estimate(found, policies[place], estimator=estimator)
        for name in ("value", "standard_error", "low", "high", "effective_rows"):
            expected = float(getattr(alone, name))
            assert getattr(together, name)[place] == pytest.approx(expected)


@every_estimator
@pytest.mark.parametrize("drift", [0.0, 0.3])
def test_intervals_cover_the_truth_as_often_as_they_say(estimator: Estimator, drift: float) -> None:
    covered = compared = 0
    for seed in range(200):
        log = simulate(np.random.default_rng(seed), drift=drift)
        found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
        value = estimate(found, POLICY, estimator=estimator)
        covered += bool(value.low <= log.value(POLICY) <= value.high)
        difference = compare(found, POLICY, OTHER, estimator=estimator)
        truth = log.value(POLICY) - log.value(OTHER)
        compared += bool(difference.low <= truth <= difference.high)
    # 200 logs at 0.95 have a standard deviation of 3.1.
    assert 180 <= covered <= 199
    assert 180 <= compared <= 199


def test_the_doubly_robust_constants_are_those_of_least_variance() -> None:
    log = simulate(np.random.default_rng(4), rows=20_000, floor=0.1)
    found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    best = float(estimate(found, POLICY, estimator=doubly_robust).standard_error)
    for shift in (-0.1, 0.1):
        moved = partial(doubly_robust, baseline=found.means + shift)
        assert float(estimate(found, POLICY, estimator=moved).standard_error) > best
    assert float(estimate(found, POLICY, estimator=importance_sampling).standard_error) > 1.5 * best


def test_logs_of_several_policies_are_pooled_by_adding_them() -> None:
    errors = []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        total, truths = None, []
        for _ in range(3):
            log = simulate(generator, rows=1000)
            found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
            total = found if total is None else total + found
            truths.append(log.value(POLICY))
        assert total is not None
        value = estimate(total, POLICY, estimator=importance_sampling)
        errors.append((float(value.value) - np.mean(truths)) / float(value.standard_error))
    assert abs(np.mean(errors)) < 3 / np.sqrt(60)


def test_the_bernstein_interval_holds_where_the_delta_method_cannot() -> None:
    # Twenty rows of a rare reward: the sample has mostly none at all, and no variance.
    missed = student = 0
    for seed in range(200):
        generator = np.random.default_rng(seed)
        rewards = (generator.random(20) < 0.05).astype(float)
        found = sum_log(np.zeros(20, dtype=int), rewards, np.ones(20), task_count=1)
        bound = bernstein(found, [1.0], reward_range=(0, 1), smallest_probability=1.0)
        missed += not bound.low <= 0.05 <= bound.high
        value = estimate(found, [1.0])
        student += not value.low <= 0.05 <= value.high
    assert missed == 0
    assert student > 40


def test_the_bernstein_interval_narrows_to_the_delta_interval() -> None:
    log = simulate(np.random.default_rng(6), rows=200_000)
    found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    bound = bernstein(found, POLICY, reward_range=(0, 1), smallest_probability=0.06)
    plain = estimate(found, POLICY, estimator=importance_sampling)
    assert bound.value == plain.value
    assert 1 < (bound.high - bound.low) / (plain.high - plain.low) < 2
    # By hand: the error times sqrt(2 ln(4/0.05)), and 7 R ln(4/0.05) / (3 (n - 1)).
    half = plain.standard_error * np.sqrt(2 * np.log(80)) + 7 * (0.4 / 0.06) * np.log(80) / (
        3 * 199_999
    )
    assert bound.high - bound.value == pytest.approx(float(half))


def test_one_value_straight_from_the_rows_is_that_of_the_sums() -> None:
    log = simulate(np.random.default_rng(7), rows=100_001)
    found = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    direct = row_value(log.tasks, log.rewards, log.probabilities, POLICY)
    assert direct == pytest.approx(float(estimate(found, POLICY).value), rel=1e-12)


def test_policies_the_log_says_nothing_of_are_refused() -> None:
    with pytest.raises(ShapeError, match="for each of the 2 tasks"):
        estimate(FOUR, [0.2, 0.3, 0.5])
    with pytest.raises(OptionError, match="sum to one"):
        estimate(FOUR, [0.5, 0.6])
    untried = sum_log([0, 0], [1.0, 0.0], [0.5, 0.5], task_count=2)
    with pytest.raises(InputError, match="no row of task 1"):
        estimate(untried, [[1.0, 0.0], [0.5, 0.5]])
    assert estimate(untried, [1.0, 0.0]).value == pytest.approx(0.5)
    with pytest.raises(OptionError, match="level"):
        estimate(FOUR, [0.5, 0.5], level=95)
    with pytest.raises(OptionError, match="reward_range"):
        bernstein(FOUR, [0.5, 0.5], reward_range=(1, 0))
    with pytest.raises(OptionError, match="smallest_probability"):
        bernstein(FOUR, [0.5, 0.5], reward_range=(0, 1), smallest_probability=0)
