"""The gradients that a step found: what a method is told of them, and their way into `.grad`.

Alone, a process has walked each task's graph once for everything, and the step is put together from what
it found. Among several workers what was found only serves to weigh: the weighted sum is then walked once
more, so that `DistributedDataParallel` or `fully_shard` see the backward pass they wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from taskmix.weighting._factors import Factors
from taskmix.weighting._gradients import TaskGradients, Walked
from taskmix.weighting._sharded import local
from taskmix.weighting._step import Step
from taskmix.weighting._writing import add_gradient, refuse_hooks


@dataclass(frozen=True)
class ComparedTasks:
    """Tasks whose gradients are compared with each other."""

    tasks: list[int]  # places among all tasks
    measured: Tensor  # what the method is told: their Gramian or gradients
    gradients: TaskGradients  # of the tensors that they share, in this process
    tensors: frozenset[int]  # places of these


@dataclass
class Found:
    """Gradients of one step: first measured, then written with their weights."""

    step: Step
    factors: Factors
    walked: Walked
    tensors: Sequence[Tensor]  # whose gradients `walked` has
    parts: list[ComparedTasks] = field(default_factory=list)  # the one of the most tasks first
    gramian: Tensor | None = None  # of all that is shared, for the tasks present in any worker
    finite: bool = True
    leaves: list[list[Tensor]] = field(default_factory=list)  # [task], trained besides
    factor: float = 1.0  # that is in the gradients
    by_representation: bool = False
    again: bool = False  # whether the weighted sum is walked once more
    sharded: bool = False
    mean: Callable[[Tensor], Tensor] | None = None  # over workers, where there are several
    trained: frozenset[int] = frozenset()  # places of the tensors that a task of any worker trains

    def write(self, weights: Tensor, by_part: Sequence[Tensor], combination: Tensor | None) -> None:
        """Adds the weighted gradients to `.grad`.

        `weights` [task] are of all tasks; a part may have its own, or a `combination` that is none of
        the gradients at hand.
        """
        here, scale = self.step.here, self.factors.scale
        if self.sharded:
            self._write_shards(weights, by_part)
        elif self.again:
            self._walk_again(weights, by_part, combination)
        elif combination is not None:
            sums = self.walked.gradients.split(combination * (scale * self.factor))
            self._write_all(sums, weights[here] * scale)
        else:
            sums = self._combined(weights[here] * scale, [own[here] * scale for own in by_part])
            self._write_all(sums, weights[here] * scale)

    def _combined(self, rest: Tensor, by_part: Sequence[Tensor]) -> dict[int, Tensor]:
        """The weighted sums, by the tensors' places; what is in no part takes the weights `rest`."""
        sums: dict[int, Tensor] = {}
        for part, own in zip(self.parts, by_part, strict=True):
            sums.update(part.gradients.combine(own.to(self.step.seen.device)))
        others = frozenset(range(len(self.tensors))).difference(*(p.tensors for p in self.parts))
        if others:
            alone = self.walked.gradients.only(others)
            sums.update(alone.combine(rest.to(self.step.seen.device)))
        return sums

    def _write_all(self, sums: dict[int, Tensor], weights: Tensor) -> None:
        """What one process alone does: the parts of the step are all at hand."""
        totals: dict[int, tuple[Tensor, Tensor]] = {}  # a leaf may serve several tasks
        for weight, leaves, parts in zip(weights, self.leaves, self.walked.heads, strict=True):
            for leaf, part in zip(leaves, parts, strict=True):
                if part is not None:
                    own = part * weight.to(part)
                    known = totals.get(id(leaf))
                    totals[id(leaf)] = (leaf, own if known is None else known[1] + own)
        for leaf, total in totals.values():
            add_gradient(leaf, total)
        if self.by_representation:
            torch.autograd.backward(
                [self.tensors[place] for place in sums],
                [total.to(self.tensors[place].dtype) for place, total in sums.items()],
                retain_graph=self.factors.retain_graph,
            )
            return
        for place, total in sums.items():
            add_gradient(self.tensors[place], total.to(self.tensors[place].dtype))

    def _walk_again(
        self, weights: Tensor, by_part: Sequence[Tensor], combination: Tensor | None
    ) -> None:
        own: dict[int, Tensor] = {}  # what gives way to another step, by the tensors' places
        here, scale = self.step.here, self.factors.scale
        if combination is not None:
            own = self._as_all(self.walked.gradients).split(combination * (scale * self.factor))
        for part, its_own in zip(self.parts, by_part, strict=True):
            if combination is None and not torch.equal(its_own[part.tasks], weights[part.tasks]):
                local_weights = (its_own[here] * scale).to(self.step.seen.device)
                sums = self._as_all(part.gradients).combine(local_weights)
                own.update({n: self.mean(s) if self.mean else s for n, s in sums.items()})
        if own:
            refuse_hooks(
                self.tensors, "several workers and a step that is no weighted sum of losses"
            )
        kept = {place: _copy(self.tensors[place].grad) for place in own}
        self.factors.walk(self.step.losses, weights[here].to(self.step.seen))
        for place, total in own.items():
            tensor, old = self.tensors[place], kept[place]
            total = total.to(tensor.dtype)
            tensor.grad = total if old is None else old + total

    def _as_all(self, gradients: TaskGradients) -> TaskGradients:
        """The gradients of what any worker trains, also where this one does not: all have to agree."""
        untouched = frozenset(range(len(self.tensors))) - self.trained
        return replace(gradients, untouched=untouched)

    def _write_shards(self, weights: Tensor, by_part: Sequence[Tensor]) -> None:
        here = self.step.here
        # The gradients were found with `scale`, and a mean over workers.
        sums = self._combined(weights[here], [own[here] for own in by_part])
        kept = {
            place: None if (old := self.tensors[place].grad) is None else local(old).clone()
            for place in sums
        }
        self.factors.walk(self.step.losses, (weights[here] - 1).to(self.step.seen))
        for place, total in sums.items():
            shard, old = local(self.tensors[place].grad), kept[place]
            total = total.to(shard.dtype)
            shard.copy_(total if old is None else old + total)


def _copy(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.clone()
