"""Estimators row by row, Exp3.S arm by arm, and improvement by looking everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from taskmix.counterfactual import (
    compare,
    doubly_robust,
    estimate,
    hajek,
    importance_sampling,
    maximise,
    sum_log,
    weighted_importance_sampling,
)
from taskmix.policies import Exp3S, Outcome


def a_log(seed: int, rows: int = 300, tasks: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.full(tasks, 3.0), rows) * 0.8 + 0.2 / tasks
    chosen = np.array([generator.choice(tasks, p=row) for row in shares])
    rewards = generator.normal(size=rows) + chosen
    return chosen, rewards, shares[np.arange(rows), chosen]


@pytest.mark.parametrize("seed", range(5))
def test_every_sum_is_the_loop_over_the_rows(seed: int) -> None:
    tasks, rewards, shares = a_log(seed)
    found = sum_log(tasks, rewards, shares, task_count=4)
    for task in range(4):
        terms = [(r, p) for k, r, p in zip(tasks, rewards, shares, strict=True) if k == task]
        assert found.visits[task] == len(terms)
        assert found.reward[task] == pytest.approx(sum(r / p for r, p in terms))
        assert found.weight[task] == pytest.approx(sum(1 / p for _, p in terms))
        assert found.reward_squared[task] == pytest.approx(sum(r**2 / p**2 for r, p in terms))
        assert found.reward_weight[task] == pytest.approx(sum(r / p**2 for r, p in terms))
        assert found.weight_squared[task] == pytest.approx(sum(1 / p**2 for _, p in terms))
        assert found.largest_weight[task] == pytest.approx(max(1 / p for _, p in terms))
        assert found.lowest[task] == pytest.approx(min(r / p for r, p in terms))
        assert found.highest[task] == pytest.approx(max(r / p for r, p in terms))


def rows_of(policy: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tasks, rewards, shares = a_log(seed)
    return policy[tasks] / shares, rewards, tasks


@pytest.mark.parametrize("seed", range(5))
def test_estimates_and_errors_are_those_of_the_rows(seed: int) -> None:
    policy = np.random.default_rng(100 + seed).dirichlet(np.ones(4))
    weights, rewards, tasks = rows_of(policy, seed)
    found = sum_log(*a_log(seed), task_count=4)
    rows = len(weights)

    plain = estimate(found, policy, estimator=importance_sampling)
    terms = weights * rewards
    assert plain.value == pytest.approx(terms.mean())
    assert plain.standard_error == pytest.approx(terms.std(ddof=1) / math.sqrt(rows))
    assert plain.effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert plain.largest_weight == pytest.approx(weights.max())
    assert plain.weight_mean == pytest.approx(weights.mean())

    weighted = estimate(found, policy, estimator=weighted_importance_sampling)
    value = terms.sum() / weights.sum()
    residuals = weights * (rewards - value) / weights.sum()
    assert weighted.value == pytest.approx(value)
    correction = rows / (rows - 1)
    assert weighted.standard_error == pytest.approx(math.sqrt((residuals**2).sum() * correction))

    by_task = estimate(found, policy, estimator=hajek)
    inverse = weights / policy[tasks]
    means = [
        np.average(rewards[tasks == task], weights=inverse[tasks == task]) for task in range(4)
    ]
    assert by_task.value == pytest.approx(float(policy @ means))
    variance = 0.0
    for row in range(rows):
        mine = tasks == tasks[row]
        share = policy[tasks[row]] * inverse[row] / inverse[mine].sum()
        variance += (share * (rewards[row] - means[tasks[row]])) ** 2
    assert by_task.standard_error == pytest.approx(math.sqrt(variance * correction))

    robust = estimate(found, policy, estimator=doubly_robust)
    constants = []
    for task in range(4):
        mine = tasks == task
        probability = 1 / inverse[mine]
        constants.append(np.average(rewards[mine], weights=(1 - probability) / probability**2))
    explained = np.array(constants)
    terms = policy @ explained + weights * (rewards - explained[tasks])
    assert robust.value == pytest.approx(terms.mean())
    assert robust.standard_error == pytest.approx(terms.std(ddof=1) / math.sqrt(rows))


@pytest.mark.parametrize("seed", range(5))
def test_a_paired_difference_is_that_of_the_rows(seed: int) -> None:
    one, other = np.random.default_rng(seed).dirichlet(np.ones(4), 2)
    found = sum_log(*a_log(seed), task_count=4)
    terms = []
    values = []
    for policy in (one, other):
        weights, rewards, _ = rows_of(policy, seed)
        value = (weights * rewards).sum() / weights.sum()
        values.append(value)
        terms.append(weights * (rewards - value) / weights.sum())
    rows = len(terms[0])
    difference = compare(found, one, other)
    assert difference.value == pytest.approx(values[0] - values[1])
    assert difference.standard_error == pytest.approx(
        math.sqrt(((terms[0] - terms[1]) ** 2).sum() * rows / (rows - 1))
    )


@pytest.mark.parametrize("propensity", ["policy", "mixture"])
@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("beta", [0.0, 0.05])
def test_exp3s_is_equation_5_arm_by_arm(propensity: Any, count: int, beta: float) -> None:
    policy = Exp3S(eta=0.1, epsilon=0.2, beta=beta, propensity=propensity)
    state = policy.init(np.ones(count, dtype=np.int64))
    generator = np.random.default_rng(0)
    weights = [0.0] * count  # the paper's omega, at t = 1
    for t in range(2, 300):
        rho = [math.exp(w) / sum(math.exp(v) for v in weights) for w in weights]
        pi = [0.8 * r + 0.2 / count for r in rho]
        np.testing.assert_allclose(policy.probabilities(state), pi, rtol=1e-9)
        choice = policy.select(state, generator)
        reward = float(generator.uniform(-1, 1))
        state = policy.update(state, Outcome(choice, loss=1.0, reward=reward))
        divide = rho if propensity == "policy" else pi
        moved = [
            w + 0.1 * ((reward if k == choice.task else 0.0) + beta) / divide[k]
            for k, w in enumerate(weights)
        ]
        alpha = 1 / t
        weights = [
            math.log(
                (1 - alpha) * math.exp(moved[k])
                + alpha / (count - 1) * sum(math.exp(moved[j]) for j in range(count) if j != k)
            )
            for k in range(count)
        ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weight", [0.02, 0.1, 0.5])
def test_no_point_of_a_fine_grid_beats_the_improved_policy(seed: int, weight: float) -> None:
    found = sum_log(*a_log(seed, tasks=3), task_count=3)
    best = maximise(found, weight)
    steps = 400
    first, second = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    inside = first + second <= steps
    grid = np.stack([first[inside], second[inside], (steps - first - second)[inside]], axis=1)
    policies = grid / steps
    values = policies @ found.reward / (policies @ found.weight)
    logs = np.where(policies > 0, np.log(np.where(policies > 0, policies, 1.0)), 0.0)
    values = values - weight * (policies * logs).sum(axis=1)
    assert best.objective >= values.max() - 1e-12
    assert best.objective - values.max() < 1e-2 * weight
    np.testing.assert_allclose(best.probabilities, policies[values.argmax()], atol=0.01)
