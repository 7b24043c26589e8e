"""The two ways to take a step: of one task that a policy draws, or of all tasks, weighted.

A policy hears what came of its step, and what the batch cost: how many numbers the encoder read, which
depends on the batch alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import InputError
from taskmix.models import named_last_layer
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.policies import AnyPolicy, AnyReward, Outcome
from taskmix.tasks import (
    DenseInputs,
    Inputs,
    PairInputs,
    RaggedInputs,
    SubwordInputs,
    WindowInputs,
)
from taskmix.training._events import StepEvent
from taskmix.training._losses import known_targets
from taskmix.training._machinery import Machinery, input_groups, must_be_finite, sparse_tasks
from taskmix.training._streams import Stream
from taskmix.weighting import AnyWeighting, Balancer, Needs


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


MOST_SKIPPED = 1000  # batches without a target of some task, for a method that asks for every one


@dataclass(frozen=True)
class _Batch:
    """Rows of inputs that some tasks share."""

    tasks: list[int]
    present: list[int]  # those of them that any of its rows has a target of
    count: int  # of its rows, those of other processes too
    rows: Tensor  # of this process
    shares: list[float]  # what this process's loss of each present task counts
    inputs: Any


class WeightingSteps:
    """All tasks every step: each brings a batch, and the weighted sum of the losses is descended.

    Tasks that share their inputs get the same rows, which are encoded once. A task of which these rows
    have no target has no loss in the step: it gets no weight, a method does not hear of it, and the
    step's event does not name it; for a method that needs every task, such rows are passed over.

    Methods that compare the tasks' gradients are given those of the encoder. One that wants the losses
    after the step gets a second forward pass of the same batches with the same dropout; one that counts
    epochs hears of an epoch's end whenever the inputs with the most rows have been passed through.
    """

    def __init__(self, machinery: Machinery, weighting: AnyWeighting) -> None:
        self._machinery = machinery
        encoder = machinery.model.encoder
        self._balancer = Balancer(
            weighting,
            shared=encoder,
            last_layer=named_last_layer(encoder),
            average="gradients",  # so that several processes are one with the whole batch
        )
        self._groups = input_groups(machinery.tasks)
        self._streams = [machinery.stream(group, group[0]) for group in self._groups]
        self._longest = max(self._streams, key=len)
        self._sparse = sparse_tasks(machinery.tasks, self._groups)

    def take(self, step: int) -> StepEvent:
        begin = time.perf_counter()
        epochs = self._longest.completed
        needs = self._balancer.needs
        self._machinery.seed_step(step)
        with self._machinery.ranks.working():
            batches = [self._batch(*pair) for pair in zip(self._groups, self._streams, strict=True)]
            codes, losses = self._forward(batches)
        self._machinery.optimizer.zero_grad(set_to_none=True)
        balanced = self._balancer.backward(
            losses, representation=codes if Needs.REPRESENTATION in needs else None
        )
        self._still_heads(losses)
        self._machinery.step_optimizer()
        values, weights = torch.stack([balanced.losses, balanced.weights]).tolist()
        there = [place for place, loss in enumerate(losses) if loss is not None]
        for place in there:
            must_be_finite(values[place], step, self._machinery.tasks[place].name)
        if Needs.LOSSES_AFTER in needs:
            self._machinery.seed_step(step)  # the same dropout as before the step
            with torch.no_grad():
                self._balancer.after_step(self._forward(batches)[1])
        if self._longest.completed > epochs:
            self._balancer.end_epoch()
        examples = {place: batch.count for batch in batches for place in batch.tasks}
        return StepEvent(
            step=step,
            tasks=tuple(there),
            losses=tuple(values[place] for place in there),
            examples=tuple(examples[place] for place in there),
            seconds=time.perf_counter() - begin,
            weights=tuple(weights[place] for place in there),
        )

    def _batch(self, tasks: list[int], stream: Stream) -> _Batch:
        ranks, known = self._machinery.ranks, self._machinery.tasks
        rows, present = self._rows(tasks, stream)
        mine = ranks.part(rows)
        shares = [ranks.share(known[place], rows) for place in present]
        inputs = known[tasks[0]].splits["train"].inputs.batch(mine)
        return _Batch(tasks, present, len(rows), mine, shares, inputs)

    def _rows(self, tasks: list[int], stream: Stream) -> tuple[Tensor, list[int]]:
        """The next rows, and the tasks they have a target of: of every task, where a method asks."""
        for _ in range(MOST_SKIPPED):
            rows = stream.take()
            present = self._present(tasks, rows)
            if len(present) == len(tasks) or Needs.EVERY_TASK not in self._balancer.needs:
                return rows, present
        absent = [self._machinery.tasks[place].name for place in tasks if place not in present]
        raise InputError(
            f"`{type(self._balancer.method).__name__}` should have a loss of every task in every step. "
            f"Found {MOST_SKIPPED} batches without a target of {', '.join(absent)}. Take another "
            "method, or larger batches."
        )

    def _present(self, tasks: list[int], rows: Tensor) -> list[int]:
        """The tasks that any of the rows, those of other processes too, has a target of."""
        asked = [place for place in tasks if place in self._sparse]
        if not asked:
            return tasks
        targets = [self._machinery.tasks[place].splits["train"].targets[rows] for place in asked]
        found = torch.stack([known_targets(each).any() for each in targets]).tolist()
        absent = {place for place, there in zip(asked, found, strict=True) if not there}
        return [place for place in tasks if place not in absent]

    def _still_heads(self, losses: Sequence[Tensor | None]) -> None:
        """Gives heads without a loss a gradient of 0: the optimiser steps all parameters alike."""
        for place, loss in enumerate(losses):
            if loss is None:
                for parameter in self._machinery.model.heads[place].parameters():
                    if parameter.requires_grad and parameter.grad is None:
                        parameter.grad = torch.zeros_like(parameter)

    def _forward(self, batches: Sequence[_Batch]) -> tuple[list[Tensor], list[Tensor | None]]:
        """The shared code of each batch, and each task's loss; None where it has no target."""
        codes = []
        losses: list[Tensor | None] = [None] * len(self._machinery.tasks)
        with self._machinery.autocast():
            for batch in batches:
                code = self._machinery.model.encoder(batch.inputs)
                codes.append(code)
                shares = dict(zip(batch.present, batch.shares, strict=True))
                for place in batch.tasks:
                    # Also where there is no target: the dropout of the heads after it stays the same.
                    outputs = self._machinery.model.heads[place](code)
                    if place in shares:
                        targets = self._machinery.tasks[place].splits["train"].targets[batch.rows]
                        losses[place] = self._machinery.loss(place, outputs, targets, shares[place])
        return codes, losses

    def measured(self, scores: Mapping[int, float]) -> None:
        """A weighting learns from training alone."""

    def state(self) -> dict[str, Any]:
        return {
            "weighting": self._balancer.state_dict(),
            "streams": [list(stream.position) for stream in self._streams],
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self._balancer.load_state_dict(tree["weighting"])
        for stream, position in zip(self._streams, tree["streams"], strict=True):
            stream.move_to((position[0], position[1]))


def batch_cost(batch: Any) -> float:
    """Numbers in a batch, padding included; 1 where it cannot be told."""
    if isinstance(batch, Tensor):
        return float(batch.numel())
    if isinstance(batch, dict):
        return float(batch["input_ids"].numel()) if "input_ids" in batch else 1.0
    if isinstance(batch, tuple):
        return float(sum(batch_cost(part) for part in batch))
    return 1.0


def batch_costs(inputs: Inputs, rows: Tensor) -> NDArray[np.float64]:
    """The costs of the batches `rows` [batch, row], without making them where their size is known.

    >>> from taskmix.tasks import DenseInputs
    >>> inputs = DenseInputs(torch.zeros(10, 3))
    >>> batch_costs(inputs, torch.tensor([[0, 1], [5, 6]])).tolist()  # 2 rows of 3 numbers
    [6.0, 6.0]
    """
    batches, count = rows.shape
    if isinstance(inputs, PairInputs):
        return batch_costs(inputs.first, rows) + batch_costs(inputs.second, rows)
    if isinstance(inputs, RaggedInputs | SubwordInputs):
        least = inputs.minimum if isinstance(inputs, RaggedInputs) else 0
        widths = (inputs.offsets[rows + 1] - inputs.offsets[rows]).amax(dim=1).clamp(min=least)
        return np.asarray(count * widths.double().numpy())
    if isinstance(inputs, DenseInputs):
        return np.full(batches, float(count * inputs.values[0].numel()))
    if isinstance(inputs, WindowInputs):
        return np.full(batches, float(count * (2 * inputs.width + 1)))
    return np.array([batch_cost(inputs.batch(each)) for each in rows])
