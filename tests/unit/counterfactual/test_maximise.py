from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from simulated_logs import simulate

from taskmix.counterfactual import LogStatistics, maximise, maximise_by_cmaes, sum_log
from taskmix.errors import MissingExtraError, OptionError
from taskmix.numerics import entropy


def sums(reward: list[float], weight: list[float]) -> LogStatistics:
    """Statistics of which only A and B matter here."""
    a, b = np.array(reward), np.array(weight)
    ones = np.ones_like(a)
    return LogStatistics(
        visits=np.full(a.shape, 10),
        reward=a,
        weight=b,
        reward_squared=ones,
        reward_weight=ones,
        weight_squared=ones,
        largest_weight=ones,
        lowest=ones,
        highest=ones,
        clipped=np.zeros(a.shape, dtype=np.int64),
    )


def objective(statistics: LogStatistics, policy: np.ndarray, weight: float) -> float:
    value = policy @ statistics.reward / (policy @ statistics.weight)
    return float(value + weight * entropy(policy))


def test_equal_weights_give_the_softmax_of_the_means() -> None:
    # Means 1 and 0 and lambda 1 / ln 3: the odds are exp(ln 3) = 3.
    found = maximise(sums([5.0, 0.0], [5.0, 5.0]), 1 / math.log(3))
    np.testing.assert_allclose(found.probabilities, [0.75, 0.25])


def test_no_entropy_puts_everything_on_the_best_task() -> None:
    found = maximise(sums([1.0, 3.0, 4.0], [2.0, 4.0, 8.0]), 0.0)
    np.testing.assert_allclose(found.probabilities, [0, 1, 0])
    assert found.objective == pytest.approx(0.75)


def test_much_entropy_is_uniform_and_equal_tasks_are_too() -> None:
    many = maximise(sums([1.0, 3.0, 4.0], [5.0, 5.0, 5.0]), 1e6)
    np.testing.assert_allclose(many.probabilities, 1 / 3, atol=1e-6)
    same = maximise(sums([2.0, 2.0], [4.0, 4.0]), 0.1)
    np.testing.assert_allclose(same.probabilities, 0.5)


@pytest.mark.parametrize("weight", [0.001, 0.02, 0.2, 2.0])
def test_the_gradient_is_zero_at_the_result(weight: float) -> None:
    log = simulate(np.random.default_rng(0))
    statistics = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    found = maximise(statistics, weight)
    policy = found.probabilities
    logits = np.log(np.maximum(policy, 1e-300))
    for task in range(5):
        slopes = []
        for step in (1e-5, -1e-5):
            moved = np.exp(logits + step * (np.arange(5) == task))
            slopes.append(objective(statistics, moved / moved.sum(), weight))
        assert (slopes[0] - slopes[1]) / 2e-5 == pytest.approx(0.0, abs=1e-7)
    assert found.objective == pytest.approx(objective(statistics, policy, weight))


@pytest.mark.parametrize("weight", [0.05, 0.2, 1.0])
def test_the_search_of_the_paper_finds_the_same_policy(weight: float) -> None:
    log = simulate(np.random.default_rng(2), rows=5000)
    statistics = sum_log(log.tasks, log.rewards, log.probabilities, task_count=5)
    exact = maximise(statistics, weight)
    found = maximise_by_cmaes(
        statistics, weight, generator=np.random.default_rng(0), generations=100
    )
    assert found.objective <= exact.objective + 1e-12
    assert found.objective == pytest.approx(float(exact.objective), abs=1e-6)
    np.testing.assert_allclose(found.probabilities, exact.probabilities, atol=2e-3)
    papers = maximise_by_cmaes(
        statistics, weight, generator=np.random.default_rng(0), generations=20
    )
    assert papers.objective == pytest.approx(float(exact.objective), abs=1e-3)


def test_lopsided_weights_still_end_at_the_top() -> None:
    # One task's weights are fifty times another's: the plain fixed point alone may circle.
    generator = np.random.default_rng(4)
    for _ in range(30):
        weight = generator.uniform(0.1, 5.0, 4)
        statistics = sums(list(weight * generator.random(4)), list(weight))
        for entropy_weight in (0.01, 0.1, 1.0):
            found = maximise(statistics, entropy_weight)
            policies = generator.dirichlet(np.ones(4), 3000)
            values = policies @ statistics.reward / (policies @ statistics.weight)
            values = values + entropy_weight * entropy(policies)
            assert found.objective >= values.max() - 1e-12


def test_one_task_and_a_hundred_thousand() -> None:
    np.testing.assert_allclose(maximise(sums([1.0], [2.0]), 0.2).probabilities, [1.0])
    generator = np.random.default_rng(5)
    weight = generator.uniform(900, 1100, 100_000)
    found = maximise(sums(list(weight * generator.random(100_000)), list(weight)), 0.2)
    assert found.probabilities.sum() == pytest.approx(1.0)
    one = maximise_by_cmaes(sums([1.0], [2.0]), 0.2, generator=generator)
    np.testing.assert_allclose(one.probabilities, [1.0])


@pytest.mark.parametrize("weight", [-0.1, math.nan, math.inf])
def test_a_weight_that_cannot_be_is_refused(weight: float) -> None:
    with pytest.raises(OptionError, match="at least zero"):
        maximise(sums([1.0], [1.0]), weight)


def test_the_search_says_which_package_it_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cmaes", None)
    with pytest.raises(MissingExtraError, match=r"taskmix\[search\]"):
        maximise_by_cmaes(sums([1.0, 2.0], [1.0, 1.0]), 0.2, generator=np.random.default_rng(0))
