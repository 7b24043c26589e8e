"""The heads of all members at once, and their losses.

Slot s of a member is its s-th task. With a policy only the drawn task's head takes part in a step, so
the slot axis has one place. Outputs lie as [member * slot, class, row]: a softmax over the middle axis
runs along the rows, which is many times faster than one along a handful of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._perceptron import Parameters, linear, lower
from taskmix.models import target_scale
from taskmix.tasks import MISSING, EncodedTasks


@dataclass(frozen=True)
class Slots:
    """What the heads must know of the tasks, one row for each slot of each member."""

    closed: Tensor | None  # [slot, class, 1], -inf for classes the task has not; None: all have all
    regression: Tensor | None  # [slot, 1], which are; None: none is
    mean: Tensor  # [slot, 1], of a regression's targets
    deviation: Tensor  # [slot, 1]

    @classmethod
    def of(cls, members: Sequence[EncodedTasks], device: torch.device) -> Slots:
        slots = max(map(len, members))
        classes = max(task.outputs for tasks in members for task in tasks)
        shape = (len(members), slots)
        closed = torch.zeros(*shape, classes, 1)
        regression = torch.zeros(*shape, 1, dtype=torch.bool)
        mean, deviation = torch.zeros(*shape, 1), torch.ones(*shape, 1)
        for member, tasks in enumerate(members):
            for slot, task in enumerate(tasks):
                closed[member, slot, task.outputs :] = -torch.inf
                if task.kind == "regression":
                    regression[member, slot] = True
                    mean[member, slot], deviation[member, slot] = target_scale(tasks, task)
        return cls(
            closed.flatten(0, 1).to(device) if closed.isinf().any() else None,
            regression.flatten(0, 1).to(device) if regression.any() else None,
            mean.flatten(0, 1).to(device),
            deviation.flatten(0, 1).to(device),
        )

    def take(self, slots: Tensor) -> Slots:
        """Only these rows."""
        return Slots(
            None if self.closed is None else self.closed.index_select(0, slots),
            None if self.regression is None else self.regression.index_select(0, slots),
            self.mean.index_select(0, slots),
            self.deviation.index_select(0, slots),
        )


class Heads:
    """Hidden layers of a task's own, dropout, and a linear output; none where the encoder has it."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        self._layers = [key.removesuffix(".weight") for key in keys if key.endswith(".weight")]

    def __call__(
        self,
        parameters: Parameters,  # [slot, ...], the members' slots one after another
        codes: Tensor,  # [slot, row, feature]
        mask: Tensor | None,  # [slot, row, feature]: what dropout leaves
    ) -> Tensor:
        if not self._layers:
            return codes.transpose(1, 2)
        *hidden, last = self._layers
        for layer in hidden:
            codes = linear(
                codes, parameters[f"{layer}.weight"], parameters[f"{layer}.bias"]
            ).relu_()
        if mask is not None:
            codes = codes * mask
        weight, bias = parameters[f"{last}.weight"], parameters[f"{last}.bias"]
        lowered = lower(codes, weight, bias)
        return cast("Tensor", _Across.apply(*lowered))  # type: ignore[no-untyped-call]


class _Across(torch.autograd.Function):
    """An affine map whose outputs lie across: [slot, row, in] to [slot, out, row]."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return torch.baddbmm(bias.unsqueeze(2), weight, inputs.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs, weight = ctx.saved_tensors
        of_inputs = torch.bmm(gradient.transpose(1, 2), weight)
        return of_inputs, torch.bmm(gradient, inputs), gradient.sum(dim=2)


def losses_of(
    outputs: Tensor,  # [slot, class, row]
    slots: Slots,
    classes: Tensor,  # [slot, row]; any class where there is none
    values: Tensor | None,  # [slot, row], of regressions
    shares: Tensor,  # [slot, row], what a row counts in its task's mean; 0 without a target
    marks: Tensor | None,  # [slot, label, row], of slots whose rows may have several labels
) -> Tensor:
    """The mean loss of each slot's rows, [slot]."""
    outputs = outputs.float()
    scores = outputs if slots.closed is None else outputs + slots.closed
    each = -torch.log_softmax(scores, dim=1).gather(1, classes.unsqueeze(1)).squeeze(1)
    if slots.regression is not None and values is not None:
        predicted = outputs[:, 0] * slots.deviation + slots.mean
        squares = ((predicted - values) / slots.deviation).square()
        each = torch.where(slots.regression, squares, each)
    found = (each * shares).sum(dim=1)
    return found if marks is None else found + _losses_of_marks(outputs, marks)


def _losses_of_marks(outputs: Tensor, marks: Tensor) -> Tensor:
    """The mean loss of each slot's marks that are known, [slot]; 0 where none is."""
    _, labels, rows = marks.shape
    # Where other slots have sentences, a row's first place speaks for it.
    own = outputs[:, :labels, :: outputs.shape[2] // rows]
    known = marks != MISSING
    each = functional.binary_cross_entropy_with_logits(own, (marks == 1).to(own), reduction="none")
    total = torch.where(known, each, 0.0).sum(dim=(1, 2))
    return total / known.sum(dim=(1, 2)).clamp(min=1)
