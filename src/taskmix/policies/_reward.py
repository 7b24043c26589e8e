"""The contract of a reward: what a step was worth, from what came of it."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeVar

import numpy as np

from taskmix.errors import RunError
from taskmix.policies._policy import Outcome

StateT = TypeVar("StateT")


class Reward(Protocol[StateT]):
    """A number for each outcome, or None where there is nothing to compare with yet."""

    @property
    def needs_loss_after(self) -> bool:
        """Whether the loop must measure the same batch again after the step."""
        ...

    def init(self, task_count: int) -> StateT: ...

    def observe(
        self, state: StateT, outcome: Outcome, generator: np.random.Generator
    ) -> tuple[float | None, StateT]:
        """The reward of an outcome, and the state after it."""
        ...


AnyReward = Reward[Any]


def steps_without_draws(reward: AnyReward) -> float:
    """How many steps a reward surely takes before it draws from the generator; infinity: it never does.

    The policy draws from the same generator: while the reward does not, many tasks can be drawn at
    once. A reward says so in `steps_without_draws`; one that does not is taken to draw at any step.

    >>> steps_without_draws(HardProgress()), steps_without_draws(QuantileScaled(reward=HardProgress()))
    (inf, 1000)
    """
    found: float = getattr(reward, "steps_without_draws", 0)
    return found


def finite_reward(outcome: Outcome) -> float | None:
    """The reward of an outcome, None where it has none; one that is not a number is refused."""
    if outcome.reward is not None and not math.isfinite(outcome.reward):
        raise RunError(
            f"The reward of task {outcome.choice.task} should be finite. Found {outcome.reward}. "
            "Scale it with `QuantileScaled`, or leave it None where there is nothing to compare."
        )
    return outcome.reward


def per_unit(reward: float, outcome: Outcome) -> float:
    """A reward for each unit of what the step cost."""
    if not outcome.cost > 0:
        raise RunError(
            f"The cost of a step should be above zero. Found {outcome.cost} for task "
            f"{outcome.choice.task}. Count seconds, tokens or examples."
        )
    return reward / outcome.cost
