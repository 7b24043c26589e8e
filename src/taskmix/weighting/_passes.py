"""The backward passes of a step in which each task's own gradient is wanted.

Alone, a process walks each task's graph once for everything (shared part and head), and the step
is put together from what it found. Among several workers what was found only serves to weigh: the
weighted sum is then walked once more, so that `DistributedDataParallel` sees the one backward pass
it waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from taskmix.errors import InputError, OptionError
from taskmix.weighting._gradients import Walked, representation_gradients, task_gradients
from taskmix.weighting._graph import Survey, TaskGraph, survey
from taskmix.weighting._step import Step
from taskmix.weighting._weighting import Needs
from taskmix.weighting._workers import WorkerGroup

Shared = nn.Module | Iterable[Tensor]


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


@dataclass
class Found:
    """Gradients of one step: first measured, then written with their weights."""

    measured: Tensor  # Gramian or gradients, of the tasks present in any worker
    gramian: Tensor | None
    finite: bool
    walk: GradientPass
    step: Step
    factors: Factors
    walked: Walked | None  # None where the weighted sum is walked once more
    leaves: list[list[Tensor]] = field(default_factory=list)
    tensors: Sequence[Tensor] = ()  # whose gradients `walked` has
    factor: float = 1.0  # that is in them

    def write(self, weights: Tensor, combination: Tensor | None) -> None:
        """Adds the weighted gradients to `.grad`; `weights` [task] are of all tasks."""
        step, scale = self.step, self.factors.scale
        here = weights[step.here]
        device = step.seen.device
        if self.walked is None:
            kept = (
                [_copy(tensor.grad) for tensor in self.tensors] if combination is not None else []
            )
            self.factors.walk(step.losses, here.to(step.seen))
            if combination is not None:
                self._replace(kept, combination * scale)
            return
        local = (here * scale).to(device)
        if combination is None:
            sums = self.walked.gradients.combine(local)
        else:
            sums = self.walked.gradients.split(combination * (scale * self.factor))
        for task, (leaves, parts) in enumerate(zip(self.leaves, self.walked.heads, strict=True)):
            for leaf, part in zip(leaves, parts, strict=True):
                if part is not None:
                    _accumulate(leaf, part * local[task].to(part.dtype))
        if self.walk.by_representation:
            places = list(sums)
            torch.autograd.backward(
                [self.tensors[place] for place in places],
                [sums[place].to(self.tensors[place].dtype) for place in places],
                retain_graph=self.factors.retain_graph,
            )
        else:
            for place, total in sums.items():
                _accumulate(self.tensors[place], total.to(self.tensors[place].dtype))

    def _replace(self, kept: list[Tensor | None], combination: Tensor) -> None:
        """What the last walk added to the shared gradients gives way to the method's own step."""
        begin = 0
        for tensor, old in zip(self.tensors, kept, strict=True):
            part = combination[begin : begin + tensor.numel()].view(tensor.shape)
            begin += tensor.numel()
            part = part.to(tensor.dtype) * self.factor
            tensor.grad = part if old is None else old + part


class GradientPass:
    """Knows what is shared, and takes each task's gradient of it."""

    def __init__(
        self,
        needs: Needs,
        *,
        shared: Shared | None,
        representation: nn.Module | None,
        last_layer: Shared | None,
        workers: WorkerGroup,
        average: Literal["products", "gradients"] = "products",
    ) -> None:
        self._needs = needs
        self._workers = workers
        self._average = average
        self._outputs: list[Tensor] = []
        self._hooked = representation is not None
        self._shared = [] if shared is None else _trained(shared)
        self.by_representation = self._hooked or Needs.REPRESENTATION in needs
        if representation is not None:
            representation.register_forward_hook(self._keep_output)
        if Needs.LAST_LAYER in needs:
            self._shared = _last_layer(shared) if last_layer is None else _trained(last_layer)
            self.by_representation = False
        if not self._shared and not self.by_representation:
            raise OptionError(
                "A method that compares the tasks' gradients should know what the tasks share. "
                "Found no `shared` parameters that are trained. Give the encoder as `shared`."
            )
        if Needs.GRADIENTS in needs and self.by_representation:
            raise OptionError(
                "A method that keeps gradients from step to step should get those of parameters. "
                "Found a `representation`, which is another one in each step. Give `shared` alone."
            )

    def forget(self) -> None:
        """Drops outputs kept for a step that does not need them."""
        self._outputs.clear()

    def gradients(
        self, step: Step, factors: Factors, representation: Tensor | Sequence[Tensor] | None
    ) -> Found:
        """Each task's gradient in this step, and what the method wants to know of them."""
        if representation is not None and Needs.LAST_LAYER not in self._needs:
            self.by_representation = True
        alone = not self._workers.several and Needs.LAST_LAYER not in self._needs
        starts, factor = factors.start(step.losses)
        keep = factors.retain_graph or not alone
        if self.by_representation:
            tensors: Sequence[Tensor] = self._representations(representation)
            stops = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
            graphs = survey(step.losses, (), stops) if alone else _unknown(len(step.losses))
            walked = representation_gradients(
                step.losses, tensors, graphs, starts=starts, retain_graph=keep
            )
        else:
            tensors = self._shared
            graphs = survey(step.losses, tensors) if alone else _unknown(len(step.losses))
            walked = task_gradients(step.losses, tensors, graphs, starts=starts, retain_graph=keep)
        self.forget()
        gramian = None
        if Needs.GRADIENTS in self._needs:
            measured = walked.gradients.matrix()
            if factor != 1:
                measured = measured / factor
            if self._workers.several:
                measured = self._of_all(measured, step, mean=True)
            finite = bool(torch.isfinite(measured.sum()))
        else:
            whole = self._averages_gradients(step)
            gradients = walked.gradients.averaged(self._workers.mean) if whole else walked.gradients
            measured = gramian = gradients.gramian() / factor**2
            if self._workers.several and not whole:
                measured = gramian = self._of_all(gramian, step, mean=False)
            finite = bool(torch.isfinite(measured).all())
        return Found(
            measured,
            gramian,
            finite,
            self,
            step,
            factors,
            walked if alone else None,
            graphs.leaves,
            tensors,
            factor,
        )

    def _averages_gradients(self, step: Step) -> bool:
        """Whether gradients can be averaged: of parameters, and where every worker has every task."""
        several = self._workers.several and self._average == "gradients"
        return several and not self.by_representation and len(step.here) == len(step.names)

    def _of_all(self, local: Tensor, step: Step, *, mean: bool) -> Tensor:
        """The mean over workers, for the tasks that any worker has."""
        count = len(step.names)
        here, tasks = torch.tensor(step.here), torch.tensor(step.tasks)
        if mean:
            rows = local.new_zeros(count, local.shape[1])
            rows[here.to(local.device)] = local
            return self._workers.mean(rows)[tasks.to(local.device)]
        products = local.new_zeros(count, count)
        products[here[:, None], here[None, :]] = local
        products = self._workers.mean_products(products, step.seen.device)
        return products[tasks[:, None], tasks[None, :]]

    def _representations(self, given: Tensor | Sequence[Tensor] | None) -> list[Tensor]:
        if given is None:
            tensors = list(self._outputs)
        else:
            tensors = [given] if isinstance(given, Tensor) else list(given)
        if not tensors or any(tensor.grad_fn is None for tensor in tensors):
            raise InputError(
                "The representation should be computed by parameters that are trained. Found "
                f"{'none' if not tensors else 'one without a graph'}. Give `representation=`, the "
                "module whose output the heads get, to the balancer, or that output to `backward`."
            )
        return tensors

    def _keep_output(self, module: nn.Module, inputs: Any, output: Any) -> None:
        parts = output if isinstance(output, tuple | list) else [output]
        for part in parts:
            if isinstance(part, Tensor) and part.requires_grad:
                self._outputs.append(part)


def _unknown(count: int) -> Survey:
    """Graphs that were not looked at: nothing is asked of them but the shared gradients."""
    return Survey([TaskGraph([], [], touches_shared=True)] * count, [])


def _trained(shared: Shared) -> list[Tensor]:
    tensors = shared.parameters() if isinstance(shared, nn.Module) else shared
    return list({id(tensor): tensor for tensor in tensors if tensor.requires_grad}.values())


def _last_layer(shared: Shared | None) -> list[Tensor]:
    """The parameters of the last module that has some of its own, or the last tensors of a list."""
    if isinstance(shared, nn.Module):
        layers = [list(module.parameters(recurse=False)) for module in shared.modules()]
        trained = [_trained(layer) for layer in layers]
        return next((layer for layer in reversed(trained) if layer), [])
    tensors = [] if shared is None else _trained(shared)
    matrices = [place for place, tensor in enumerate(tensors) if tensor.dim() > 1]
    return tensors[matrices[-1] :] if matrices else tensors[-1:]


def _accumulate(tensor: Tensor, gradient: Tensor) -> None:
    """Adds to `.grad`, as `backward` does."""
    if tensor.grad is None:
        tensor.grad = gradient.detach()
    else:
        tensor.grad.add_(gradient)


def _copy(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else gradient.clone()
