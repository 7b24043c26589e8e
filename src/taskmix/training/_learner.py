"""A policy outside our own loop: what it has learned from losses so far, and the log of it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.policies import AnyPolicy, AnyReward, Choice, Outcome, Sizes
from taskmix.records import RecordWriter
from taskmix.training._gather import process_index


class Learner:
    """Hears the loss of each choice, in any order; several processes that hear the same are alike."""

    def __init__(
        self,
        policy: AnyPolicy,
        sizes: Sizes,
        *,
        seed: int,
        reward: AnyReward | None,
        record: RecordWriter | None,
    ) -> None:
        if reward is not None and reward.needs_loss_after:
            raise OptionError(
                f"The reward should need no loss after the step, which only our own loop measures. "
                f"Found {type(reward).__name__}. `HardProgress` needs none."
            )
        self.policy, self._reward, self._record = policy, reward, record
        self.state = policy.init(sizes)
        self._reward_state = reward.init(len(sizes)) if reward is not None else None
        # One of its own: what is drawn does not depend on how many losses were heard in between.
        self._generator = np.random.default_rng([seed, 1])
        self._latest: list[float | None] = [None] * len(sizes)
        self.observed = 0
        self._clock = time.perf_counter()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_record": None}  # a worker writes none

    @property
    def probabilities(self) -> NDArray[np.float64]:
        return self.policy.probabilities(self.state)

    def learn(
        self, choice: Choice, probabilities: NDArray[np.float64], loss: float, *, examples: int
    ) -> None:
        """A loss that is not finite is logged, has no reward and teaches nothing."""
        previous = self._latest[choice.task]
        outcome = Outcome(choice, loss, previous, cost=float(examples))
        reward = None
        if math.isfinite(loss):
            if self._reward is not None:
                reward, self._reward_state = self._reward.observe(
                    self._reward_state, outcome, self._generator
                )
            outcome = Outcome(choice, loss, previous, cost=outcome.cost, reward=reward)
            self._latest[choice.task] = loss
        self.state = self.policy.update(self.state, outcome)
        self.observed += 1
        now = time.perf_counter()
        if self._record is not None and process_index() == 0:
            self._record.add_step(
                self.observed,
                choice.task,
                probability=choice.probability,
                probabilities=probabilities,
                loss=loss,
                reward=reward,
                weight=None,
                seconds=now - self._clock,
                examples=examples,
            )
        self._clock = now

    def state_dict(self) -> dict[str, Any]:
        return {
            "policy": state_to_tree(self.state),
            "reward": state_to_tree(self._reward_state),
            "generator": self._generator.bit_generator.state,
            "latest": list(self._latest),
            "step": self.observed,
        }

    def load_state_dict(self, tree: dict[str, Any]) -> None:
        if len(tree["latest"]) != len(self._latest):
            raise OptionError(
                f"The state should be of {len(self._latest)} tasks. Found one of "
                f"{len(tree['latest'])}. Give the tasks the state was taken with."
            )
        self.state = state_from_tree(tree["policy"], like=self.state)
        self._reward_state = state_from_tree(tree["reward"], like=self._reward_state)
        self._generator.bit_generator.state = tree["generator"]
        self._latest = list(tree["latest"])
        self.observed = int(tree["step"])
        self._clock = time.perf_counter()
