"""All tasks every step: a weighting says what each task's loss counts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from taskmix.errors import InputError
from taskmix.models import SharedCode, named_last_layer
from taskmix.training._events import StepEvent
from taskmix.training._losses import known_targets
from taskmix.training._machinery import Machinery, input_groups, must_be_finite, sparse_tasks
from taskmix.training._streams import Stream
from taskmix.weighting import AnyWeighting, Balancer, Needs

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
                codes.append(code.shared if isinstance(code, SharedCode) else code)
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
