"""The contract of a reward: what a step was worth, from what came of it."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

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
