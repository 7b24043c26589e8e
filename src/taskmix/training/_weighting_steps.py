"""All tasks every step: a weighting says what each task's loss counts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from taskmix.models import SharedCode, named_last_layer
from taskmix.training._events import StepEvent
from taskmix.training._machinery import Machinery, input_groups, must_be_finite
from taskmix.training._streams import Stream
from taskmix.weighting import AnyWeighting, Balancer, Needs


@dataclass(frozen=True)
class _Batch:
    """Rows of inputs that some tasks share."""

    tasks: list[int]
    count: int  # of its rows, those of other processes too
    rows: Tensor  # of this process
    shares: list[float]  # what this process's loss of each task counts
    inputs: Any


class WeightingSteps:
    """All tasks every step: each brings a batch, and the weighted sum of the losses is descended.

    Tasks that share their inputs get the same rows, which are encoded once. Methods that compare the
    tasks' gradients are given those of the encoder. One that wants the losses after the step gets a
    second forward pass of the same batches with the same dropout; one that counts epochs hears of an
    epoch's end whenever the inputs with the most rows have been passed through.
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
        self._machinery.step_optimizer()
        values, weights = torch.stack([balanced.losses, balanced.weights]).tolist()
        for position, value in enumerate(values):
            must_be_finite(value, step, self._machinery.tasks[position].name)
        if Needs.LOSSES_AFTER in needs:
            self._machinery.seed_step(step)  # the same dropout as before the step
            with torch.no_grad():
                self._balancer.after_step(self._forward(batches)[1])
        if self._longest.completed > epochs:
            self._balancer.end_epoch()
        examples = {place: batch.count for batch in batches for place in batch.tasks}
        return StepEvent(
            step=step,
            tasks=tuple(range(len(values))),
            losses=tuple(values),
            examples=tuple(examples[place] for place in range(len(values))),
            seconds=time.perf_counter() - begin,
            weights=tuple(weights),
        )

    def _batch(self, tasks: list[int], stream: Stream) -> _Batch:
        rows = stream.take()
        ranks, known = self._machinery.ranks, self._machinery.tasks
        mine = ranks.part(rows)
        shares = [ranks.share(known[place], rows) for place in tasks]
        return _Batch(
            tasks, len(rows), mine, shares, known[tasks[0]].splits["train"].inputs.batch(mine)
        )

    def _forward(self, batches: Sequence[_Batch]) -> tuple[list[Tensor], list[Tensor]]:
        """The shared code of each batch, and each task's loss."""
        codes = []
        losses: list[Tensor] = [torch.empty(0)] * len(self._machinery.tasks)
        with self._machinery.autocast():
            for batch in batches:
                code = self._machinery.model.encoder(batch.inputs)
                codes.append(code.shared if isinstance(code, SharedCode) else code)
                for place, share in zip(batch.tasks, batch.shares, strict=True):
                    targets = self._machinery.tasks[place].splits["train"].targets[batch.rows]
                    outputs = self._machinery.model.heads[place](code)
                    losses[place] = self._machinery.loss(place, outputs, targets, share)
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
