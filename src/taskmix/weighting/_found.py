"""The gradients that a step found: what a method is told of them, and their way into `.grad`.

Alone, a process has walked each task's graph once for everything, and the step is put together from what
it found. Among several workers what was found only serves to weigh: the weighted sum is then walked once
more, so that `DistributedDataParallel` or `fully_shard` see the backward pass they wait for.

Gradients are put into `.grad` as `backward` puts them: added, and told to who waits for them.

`register_post_accumulate_grad_hook` is how optimisers are fused into the backward pass. Such a hook is
called once a step for each parameter, when all of its gradient is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from taskmix.errors import InputError
from taskmix.weighting._gradients import TaskGradients, Walked
from taskmix.weighting._sharded import local
from taskmix.weighting._step import Step
from taskmix.weighting._weighting import AnyGradientWeighting


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


@dataclass(frozen=True)
class Factors:
    """What multiplies the gradients but not the losses."""

    scaler: torch.amp.GradScaler | None = None
    scale: float = 1.0
    retain_graph: bool = False

    def walk(self, losses: Sequence[Tensor], weights: Tensor) -> None:
        """Steps back through all losses at once, each with its weight: no sum has to be built."""
        if self.scale != 1:
            weights = weights * self.scale
        if self.scaler is not None:
            weights = self.scaler.scale(weights)
        starts = weights.unbind()
        if any(loss.dtype is not weights.dtype for loss in losses):
            starts = tuple(w.to(loss.dtype) for w, loss in zip(starts, losses, strict=True))
        # What `torch.autograd.backward` does, without its checks of each pair of tensors, which
        # take longer than all the rest of a weighting.
        torch.autograd.Variable._execution_engine.run_backward(
            tuple(losses),
            starts,
            self.retain_graph,
            False,
            (),
            allow_unreachable=True,
            accumulate_grad=True,
        )

    def start(self, losses: Sequence[Tensor]) -> tuple[list[Tensor | None], float]:
        """What each loss's own gradient is taken to be, and that number."""
        if self.scaler is None:
            return [None] * len(losses), 1.0
        factor = self.scaler.scale(torch.ones((), device=losses[0].device))
        return [factor.to(loss.dtype) for loss in losses], float(factor)


def add_gradient(tensor: Tensor, gradient: Tensor) -> None:
    """Adds all of a step's gradient to `.grad`, and calls the hooks that wait for it."""
    if tensor.grad is None:
        tensor.grad = gradient.detach()
    else:
        tensor.grad.add_(gradient)
    hooks = tensor._post_accumulate_grad_hooks
    if hooks:
        with torch.no_grad():
            for hook in list(hooks.values()):
                hook(tensor)


def refuse_hooks(tensors: Iterable[Tensor], why: str) -> None:
    """Raises where an optimiser fused into `backward` would be told of a gradient that is not final."""
    if any(tensor._post_accumulate_grad_hooks for tensor in tensors):
        raise InputError(
            "A parameter with a hook for its whole gradient (`register_post_accumulate_grad_hook`) "
            f"should get that in one walk. Found {why}, which takes several. Step the optimiser after "
            "`balancer.backward`, or take a weighting that needs losses alone, such as BanditMTL."
        )


@dataclass(frozen=True)
class PartWeights:
    """Weights [task] of a step, float64 on the CPU; 0 for a task without a loss."""

    weights: Tensor  # of heads, and what is reported: those of the part that the most tasks share
    by_part: list[Tensor]  # those of each part of `Found`
    combination: Tensor | None  # the step of the shared part, where the method gives one
    state: Any  # after the step


def weigh_parts(
    method: AnyGradientWeighting,
    state: Any,
    found: Found,
    *,
    normalize: Literal["tasks", "one"] | None,
) -> PartWeights:
    """Asks the method part by part; its state goes from one to the next."""
    step = found.step
    weights = torch.zeros(len(step.names), dtype=torch.float64)
    weights[step.tasks] = 1.0  # of a task that shares nothing with another
    sound = found.finite and bool(torch.isfinite(step.seen[step.tasks]).all())
    waiting = set(step.tasks)
    by_part: list[Tensor] = []
    combination = None
    for part in found.parts:
        tasks = part.tasks
        if sound:
            places = None if len(tasks) == len(step.names) else torch.tensor(tasks)
            balance = method.balance(state, step.seen[tasks], part.measured, places)
            state, raw, combination = balance.state, balance.weights, balance.combination
        else:  # nothing is learned, and nothing hidden: every gradient of this step is NaN
            raw = torch.full((len(tasks),), torch.nan, dtype=torch.float64)
        size = float(raw.abs().sum())
        target = {"tasks": len(tasks), "one": 1, None: size}[normalize]
        unit = target / size if size != 0 else 1.0
        own = torch.zeros_like(weights)
        own[tasks] = raw * unit
        by_part.append(own)
        combination = None if combination is None else combination * unit
        first = sorted(waiting & set(tasks))
        weights[first] = own[first]
        waiting -= set(tasks)
    if not sound:
        weights[step.tasks] = torch.nan
    return PartWeights(weights, by_part, combination, state)
