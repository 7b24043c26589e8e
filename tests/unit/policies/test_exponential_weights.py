from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from taskmix.errors import OptionError, RunError
from taskmix.policies import (
    Choice,
    Exp3,
    Exp3S,
    Exp3SState,
    Outcome,
    lift_weights,
    share_weights,
)


def after(policy: Any, outcomes: list[tuple[int, float, float | None]], count: int) -> np.ndarray:
    state = policy.init(np.ones(count, dtype=np.int64))
    for task, probability, reward in outcomes:
        state = policy.update(state, Outcome(Choice(task, probability), loss=1.0, reward=reward))
    return policy.probabilities(state)


def test_one_reward_moves_exp3_as_in_figure_1_of_auer() -> None:
    # gamma 0.5, reward 1 drawn with 1/2: estimate 2, weight exp(0.5 * 2 / 2) = 1.6487.
    expected = 0.5 * np.array([1.6487, 1.0]) / 2.6487 + 0.25
    probabilities = after(Exp3(exploration=0.5), [(0, 0.5, 1.0)], 2)
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)


def test_one_reward_moves_exp3s_as_in_equation_5() -> None:
    # Three arms, eta 0.5, reward 1 for arm 0: rho is 1/3, so the estimate is 3 and l = (1.5, 0, 0).
    # alpha is 1/2 at t = 2: (0.5 e^1.5 + 0.25 * 2, 0.5 + 0.25 (e^1.5 + 1)) = (2.7408, 1.8704), so
    # rho = (0.42286, 0.28857, 0.28857), and with epsilon 0.3 pi = 0.7 rho + 0.1.
    policy = Exp3S(eta=0.5, epsilon=0.3)
    probabilities = after(policy, [(0, 1 / 3, 1.0)], 3)
    np.testing.assert_allclose(probabilities, [0.39600, 0.30200, 0.30200], atol=1e-5)


def test_the_two_propensities_differ_once_the_weights_do() -> None:
    outcomes = [(0, 1 / 3, 1.0), (0, 0.9, 1.0)]
    paper = after(Exp3S(eta=0.5, epsilon=0.3), outcomes, 3)
    mixture = after(Exp3S(eta=0.5, epsilon=0.3, propensity="mixture"), outcomes, 3)
    # The mixed-in uniform part makes the likely arm less likely, so its estimate is larger.
    assert mixture[0] > paper[0]


def test_exp3s_turns_to_the_arm_that_became_the_best() -> None:
    generator = np.random.default_rng(0)
    policy = Exp3S(eta=0.05, propensity="mixture")
    state = policy.init(np.ones(4, dtype=np.int64))
    for step in range(4000):
        choice = policy.select(state, generator)
        best = 0 if step < 2000 else 3
        reward = 1.0 if choice.task == best else -1.0
        state = policy.update(state, Outcome(choice, loss=1.0, reward=reward))
        if step == 1999:
            assert policy.probabilities(state)[0] > 0.8
    assert policy.probabilities(state)[3] > 0.8


@pytest.mark.parametrize("policy", [Exp3(), Exp3S()])
def test_a_step_without_a_reward_teaches_nothing_and_a_nan_is_refused(policy: Any) -> None:
    np.testing.assert_allclose(after(policy, [(1, 0.2, None)], 5), np.full(5, 0.2), rtol=1e-15)
    with pytest.raises(RunError, match="should be finite"):
        after(policy, [(1, 0.2, math.nan)], 5)


@pytest.mark.parametrize("propensity", ["policy", "mixture"])
@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_many_runs_at_once_move_as_each_alone(propensity: Any, beta: float) -> None:
    generator = np.random.default_rng(4)
    weights = generator.normal(size=(6, 5))
    weights -= weights.max(axis=-1, keepdims=True)
    tasks, rewards = generator.integers(5, size=6), generator.uniform(-1, 1, 6)
    matrix = np.zeros((6, 5))
    matrix[np.arange(6), tasks] = rewards
    options = Exp3S(eta=0.2, beta=beta, alpha=0.3, propensity=propensity)
    together = share_weights(lift_weights(weights, matrix, options=options), alpha=0.3)
    for run in range(6):
        outcome = Outcome(Choice(int(tasks[run]), 0.2), loss=1.0, reward=float(rewards[run]))
        alone = options.update(Exp3SState(weights[run]), outcome)
        np.testing.assert_allclose(together[run], alone.log_weights, atol=1e-14)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.0},
        {"epsilon": 1.5},
        {"eta": 0.0},
        {"eta": math.inf},
        {"alpha": 0.7},
        {"alpha": -0.1},
        {"beta": -1.0},
        {"propensity": "none"},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"`{next(iter(options))}` should"):
        Exp3S(**options)


@pytest.mark.parametrize("exploration", [0.0, 1.1, math.nan])
def test_exp3_explores_a_share_of_the_steps(exploration: float) -> None:
    with pytest.raises(OptionError, match="exploration"):
        Exp3(exploration=exploration)
