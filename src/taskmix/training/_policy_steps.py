"""One task a step: a policy draws it, and hears what came of the step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.policies import AnyPolicy, AnyReward, Outcome
from taskmix.training._cost import batch_cost
from taskmix.training._events import StepEvent
from taskmix.training._machinery import Machinery, must_be_finite


class PolicySteps:
    """One task a step: the policy draws it, the optimiser descends its loss alone."""

    def __init__(
        self,
        machinery: Machinery,
        policy: AnyPolicy,
        reward: AnyReward | None,
        generator: np.random.Generator,
    ) -> None:
        self._machinery = machinery
        self._policy = policy
        self._reward = reward
        self._generator = generator
        count = len(machinery.tasks)
        self._policy_state = policy.init(machinery.tasks.sizes)
        self._reward_state = reward.init(count) if reward is not None else None
        self._streams = [machinery.stream([position], position) for position in range(count)]
        self._latest: list[float | None] = [None] * count  # each task's loss at its last visit
        self._scores: list[float | None] = [None] * count  # dev scores no outcome has told yet
        self._told: NDArray[np.float64] | None = None

    def take(self, step: int) -> StepEvent:
        begin = time.perf_counter()
        probabilities = self._policy.probabilities(self._policy_state)
        choice = self._policy.select(self._policy_state, self._generator)
        task = choice.task
        rows = self._streams[task].take()
        split = self._machinery.tasks[task].splits["train"]
        ranks, mine = self._machinery.ranks, self._machinery.ranks.part(rows)
        share = ranks.share(self._machinery.tasks[task], rows)

        self._machinery.seed_step(step)
        with ranks.working():
            batch, targets = split.inputs.batch(mine), split.targets[mine]
            loss = self._loss(batch, targets, task, share)
            self._machinery.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
        self._machinery.step_optimizer()
        value, cost = ranks.mean([loss.item(), batch_cost(batch)])
        must_be_finite(value, step, self._machinery.tasks[task].name)
        after = None
        if self._reward is not None and self._reward.needs_loss_after:
            self._machinery.seed_step(step)  # the same dropout as before the step
            with torch.no_grad():
                (after,) = ranks.mean([self._loss(batch, targets, task, share).item()])

        outcome = Outcome(
            choice,
            value,
            previous_loss=self._latest[task],
            loss_after=after,
            cost=cost * ranks.count,
            score=self._scores[task],
        )
        self._scores[task] = None
        reward = None
        if self._reward is not None:
            reward, self._reward_state = self._reward.observe(
                self._reward_state, outcome, self._generator
            )
            outcome = replace(outcome, reward=reward)
        self._policy_state = self._policy.update(self._policy_state, outcome)
        self._latest[task] = value
        return StepEvent(
            step=step,
            tasks=(task,),
            losses=(value,),
            examples=(len(rows),),
            seconds=time.perf_counter() - begin,
            probability=choice.probability,
            probabilities=self._tell(probabilities),
            reward=reward,
            loss_after=after,
        )

    def measured(self, scores: Mapping[int, float]) -> None:
        """Dev scores, higher is better; each is told with its task's next outcome."""
        for task, score in scores.items():
            self._scores[task] = score

    def _loss(self, batch: Any, targets: Tensor, task: int, share: float) -> Tensor:
        with self._machinery.autocast():
            return self._machinery.loss(task, self._machinery.model(batch, task), targets, share)

    def _tell(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The vector where it differs from the one told last."""
        if self._told is probabilities or (
            self._told is not None and np.array_equal(self._told, probabilities)
        ):
            return None
        self._told = probabilities
        return probabilities

    def state(self) -> dict[str, Any]:
        return {
            "policy": state_to_tree(self._policy_state),
            "reward": state_to_tree(self._reward_state),
            "generator": self._generator.bit_generator.state,
            "streams": [list(stream.position) for stream in self._streams],
            "latest": list(self._latest),
            "scores": list(self._scores),
            "told": self._told,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self._policy_state = state_from_tree(tree["policy"], like=self._policy_state)
        self._reward_state = state_from_tree(tree["reward"], like=self._reward_state)
        self._generator.bit_generator.state = tree["generator"]
        for stream, position in zip(self._streams, tree["streams"], strict=True):
            stream.move_to((position[0], position[1]))
        self._latest = list(tree["latest"])
        self._scores = list(tree["scores"])
        self._told = tree["told"]
