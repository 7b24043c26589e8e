"""One suite that every policy passes, none excepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from taskmix.errors import InputError
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.policies import POLICIES as POLICIES_BY_WORD
from taskmix.policies import (
    AnyPolicy,
    Capped,
    Choice,
    Exp3,
    Exp3S,
    Fixed,
    MixtureShares,
    Outcome,
    Scheduled,
    SizeProportional,
    Tempered,
    Uniform,
)
from taskmix.records import load_state, save_state


def ramp(count: int) -> list[float]:
    shares = np.arange(1.0, count + 1)
    return list(shares / shares.sum())


def flat(count: int) -> list[float]:
    return [1.0 / count] * count


POLICIES: dict[str, Callable[[int], AnyPolicy]] = {
    "uniform": lambda count: Uniform(),
    "size proportional": lambda count: SizeProportional(),
    "tempered": lambda count: Tempered(temperature=3.0),
    "capped": lambda count: Capped(),
    "fixed": lambda count: Fixed(ramp(count)),
    "mixture": lambda count: MixtureShares(ramp(count)),
    "scheduled": lambda count: Scheduled(((0, flat(count)), (50, ramp(count)))),
    "scheduled, interpolated": lambda count: Scheduled(
        ((0, flat(count)), (200, ramp(count))), interpolate=True
    ),
    "exp3": lambda count: Exp3(exploration=0.1),
    "exp3s": lambda count: Exp3S(),
    "exp3s, mixture": lambda count: Exp3S(propensity="mixture", beta=0.01, alpha=0.01, eta=0.1),
}


def test_every_policy_that_can_be_typed_is_in_this_suite() -> None:
    named = {each.policy for each in POLICIES_BY_WORD.values()}
    assert named <= {type(make(3)) for make in POLICIES.values()}


EXTREME = [1e300, -1e300, 0.0, 1.0, -1.0, 1e-300, 5.0, -1e8]

every_policy = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES.keys())


def sizes(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(1, 10**6, count)


def train(policy: AnyPolicy, state: Any, steps: int, generator: np.random.Generator) -> Any:
    for _ in range(steps):
        choice = policy.select(state, generator)
        reward = float(generator.uniform(-1, 1)) if choice.task else None
        state = policy.update(state, Outcome(choice, loss=1.0, reward=reward))
    return state


@every_policy
@pytest.mark.parametrize("count", [1, 2, 3, 8, 100, 100_000])
def test_probabilities_sum_to_one_and_leave_no_task_out(
    make: Callable[[int], AnyPolicy], count: int
) -> None:
    policy = make(count)
    state = policy.init(sizes(count))
    generator = np.random.default_rng(0)
    for _ in range(3):
        probabilities = policy.probabilities(state)
        assert probabilities.shape == (count,)
        assert probabilities.dtype == np.float64
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
        assert np.all(probabilities > 0)
        state = train(policy, state, 5, generator)


@every_policy
@pytest.mark.parametrize("count", [1, 3, 8, 50])
def test_select_draws_what_probabilities_says(make: Callable[[int], AnyPolicy], count: int) -> None:
    policy, generator = make(count), np.random.default_rng(7)
    state = train(policy, policy.init(np.arange(1, count + 1)), 40, generator)
    probabilities = policy.probabilities(state)
    draws = [policy.select(state, generator) for _ in range(20_000)]
    counts = np.bincount([choice.task for choice in draws], minlength=count)
    if count > 1:
        assert chisquare(counts, probabilities * len(draws)).pvalue > 1e-4
    assert all(choice.probability == probabilities[choice.task] for choice in draws[:100])


@every_policy
def test_the_logged_probability_is_the_one_really_drawn_with(
    make: Callable[[int], AnyPolicy],
) -> None:
    # Over all steps a task's visits, each counted 1/probability, have the mean of the steps.
    policy, generator = make(4), np.random.default_rng(1)
    state, steps = policy.init(np.array([10, 20, 30, 40])), 4000
    weights, squares = np.zeros(4), np.zeros(4)
    for _ in range(steps):
        choice = policy.select(state, generator)
        weights[choice.task] += 1 / choice.probability
        squares[choice.task] += 1 / choice.probability**2 - 1 / choice.probability
        reward = float(generator.uniform(0, 1)) * (choice.task == 2)
        state = policy.update(state, Outcome(choice, loss=1.0, reward=reward))
    assert np.all(np.abs(weights - steps) < 4 * np.sqrt(squares))


@every_policy
def test_the_same_generator_gives_the_same_choices(make: Callable[[int], AnyPolicy]) -> None:
    def run() -> list[Choice]:
        policy, generator = make(5), np.random.default_rng(3)
        state, choices = policy.init(np.full(5, 9)), []
        for step in range(100):
            choices.append(policy.select(state, generator))
            outcome = Outcome(choices[-1], loss=1.0, reward=(step % 3 - 1.0))
            state = policy.update(state, outcome)
        return choices

    assert run() == run()


@every_policy
def test_a_checkpoint_holds_the_whole_state(
    make: Callable[[int], AnyPolicy], tmp_path: Path
) -> None:
    policy = make(6)
    state = train(policy, policy.init(np.full(6, 50)), 60, np.random.default_rng(2))
    save_state(tmp_path / "policy.safetensors", state_to_tree(state))
    fresh = policy.init(np.full(6, 50))
    restored = state_from_tree(load_state(tmp_path / "policy.safetensors"), like=fresh)
    assert type(restored) is type(state)
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(50):
        np.testing.assert_array_equal(policy.probabilities(restored), policy.probabilities(state))
        choice = policy.select(state, one)
        assert policy.select(restored, other) == choice
        outcome = Outcome(choice, loss=1.0, reward=0.5)
        state, restored = policy.update(state, outcome), policy.update(restored, outcome)


@every_policy
def test_options_and_states_cannot_be_changed_and_an_update_leaves_the_old_state_alone(
    make: Callable[[int], AnyPolicy],
) -> None:
    policy = make(3)
    state = policy.init(np.full(3, 5))
    before = policy.probabilities(state).copy()
    policy.update(state, Outcome(Choice(1, float(before[1])), loss=1.0, reward=1.0))
    np.testing.assert_array_equal(policy.probabilities(state), before)
    with pytest.raises(FrozenInstanceError):
        setattr(state, fields(state)[0].name, None)


def endure(policy: AnyPolicy, updates: int) -> None:
    state = policy.init(np.arange(1, 9))
    for step in range(updates):
        task = (step * 7 + step // 8) % 8
        probability = float(policy.probabilities(state)[task]) if step % 50 < 8 else 0.125
        reward = EXTREME[(step * 3 + step // 11) % len(EXTREME)]
        state = policy.update(state, Outcome(Choice(task, probability), loss=1.0, reward=reward))
        if step % 1000 == 0:
            probabilities = policy.probabilities(state)
            assert np.all(np.isfinite(probabilities))
            assert np.all(probabilities > 0)
    probabilities = policy.probabilities(state)
    assert np.all(np.isfinite(probabilities))
    assert probabilities.sum() == pytest.approx(1.0)
    for item in fields(state):
        assert np.all(np.isfinite(np.asarray(getattr(state, item.name), dtype=np.float64)))


@every_policy
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_extreme_rewards_leave_everything_finite(make: Callable[[int], AnyPolicy]) -> None:
    endure(make(8), 100_000)


@every_policy
@pytest.mark.parametrize("wrong", [[], [5, 0, 3], [[1, 2], [3, 4]]])
def test_sizes_that_no_tasks_have_are_refused(
    make: Callable[[int], AnyPolicy], wrong: list[Any]
) -> None:
    with pytest.raises(InputError):
        make(3).init(np.array(wrong))
