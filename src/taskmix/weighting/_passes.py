"""The backward passes of a step in which each task's own gradient is wanted.

Tasks are compared among those that train the same of the shared parameters. Of tasks A and B with one
encoder and C and D with another, A's gradient of the second encoder is not a short one: there is none.
As a row of zeros it would still be compared (MGDA would find that nothing descends all losses, and every
task's weight would depend on tasks it shares nothing with). So the shared parameters fall into parts by
the tasks whose losses reach them, and a method is asked once for each part that two tasks or more train,
among these tasks alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from taskmix.errors import InputError, OptionError
from taskmix.weighting._found import ComparedTasks, Factors, Found, refuse_hooks
from taskmix.weighting._gradients import (
    TaskGradients,
    representation_gradients,
    task_gradients,
)
from taskmix.weighting._graph import Survey, TaskGraph, survey
from taskmix.weighting._sharded import (
    is_sharded,
    products_of_shards,
    refuse_flattened,
    sharded_gradients,
)
from taskmix.weighting._step import Step, WorkerGroup
from taskmix.weighting._weighting import Needs

Shared = nn.Module | Iterable[Tensor]


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
        self._encoder = self._shared if representation is None else _trained(representation)
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
        refuse_flattened([*self._shared, *self._encoder])
        if not self.by_representation and is_sharded(self._shared):
            return self._of_shards(step, factors)
        alone = not self._workers.several and Needs.LAST_LAYER not in self._needs
        starts, factor = factors.start(step.losses)
        keep = factors.retain_graph or not alone
        if self.by_representation:
            tensors: Sequence[Tensor] = self._representations(representation)
            graphs = _unknown(len(step.losses))
            if alone:
                stops = [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
                above = survey(step.losses, (), stops)
                # A head that also uses the encoder's own parameters cannot be walked without it.
                alone = not self._below(tensors) & {id(t) for each in above.leaves for t in each}
                graphs, keep = (above, keep) if alone else (graphs, True)
            walked = representation_gradients(
                step.losses, tensors, graphs, starts=starts, retain_graph=keep
            )
        else:
            tensors = self._shared
            graphs = survey(step.losses, tensors) if alone else _unknown(len(step.losses))
            walked = task_gradients(step.losses, tensors, graphs, starts=starts, retain_graph=keep)
        self.forget()
        several = self._workers.several
        found = Found(
            step,
            factors,
            walked,
            tensors,
            leaves=graphs.leaves,
            factor=factor,
            by_representation=self.by_representation,
            again=not alone,
            mean=self._workers.mean if several else None,
        )
        if Needs.GRADIENTS in self._needs:
            measured = walked.gradients.matrix()
            if factor != 1:
                measured = measured / factor
            if several:
                measured = self._rows_of_all(measured, step)
            found.finite = bool(torch.isfinite(measured.sum()))
            everything = frozenset(range(len(tensors)))
            found.parts.append(ComparedTasks(step.tasks, measured, walked.gradients, everything))
            self._reached(found)
        else:
            self._measure_products(found)
        return found

    def _of_shards(self, step: Step, factors: Factors) -> Found:
        """As `gradients`, where each process has a shard of each shared parameter."""
        if Needs.GRADIENTS in self._needs:
            raise InputError(
                "A method that keeps the tasks' gradients from step to step should get whole "
                "parameters. Found sharded ones. UPGrad, NashMTL and others that compare inner "
                "products, and all weightings of losses, such as BanditMTL, work with them."
            )
        if not step.everywhere:
            raise InputError(
                "With sharded parameters every worker should have a loss of the same tasks in a step, "
                "since each task takes a backward pass of all workers. Found that some have others. "
                "Give each worker rows of every task, or take a weighting that needs losses alone."
            )
        refuse_hooks(self._shared, "sharded parameters")
        _, factor = factors.start(step.losses)
        factor *= factors.scale  # what is not shared keeps the gradients of these walks
        starts = [torch.full_like(loss, factor) for loss in step.losses]
        walked = sharded_gradients(step.losses, self._shared, starts)
        self.forget()
        found = Found(step, factors, walked, self._shared, factor=factor, sharded=True)
        self._measure_products(found)
        return found

    def _measure_products(self, found: Found) -> None:
        """Inner products of the tasks' gradients: of each part of what is shared among its tasks."""
        step, gradients = found.step, found.walked.gradients
        everything = frozenset(range(len(found.tensors)))
        places = [(step.tasks, everything)]
        if not self.by_representation:
            reached = self._reached(found)
            if Needs.LAST_LAYER not in self._needs:
                parts = shared_parts(reached, [tensor.numel() for tensor in found.tensors])
                # The usual case, that all tasks train all of it, needs no copy of any part.
                if parts and not (
                    parts[0].tasks == step.tasks and parts[0].tensors == sorted(found.trained)
                ):
                    places = [(part.tasks, frozenset(part.tensors)) for part in parts]
        averaged = self._averages_gradients(step)
        for tasks, tensors in places:
            own = gradients if tensors == everything else gradients.only(tensors)
            products = self._products(found, own, averaged=averaged)
            found.parts.append(ComparedTasks(tasks, _between(products, tasks), own, tensors))
            found.gramian = products if found.gramian is None else found.gramian + products
        if found.gramian is not None:
            found.gramian = _between(found.gramian, step.tasks)
            found.finite = bool(torch.isfinite(found.gramian).all())

    def _products(self, found: Found, gradients: TaskGradients, *, averaged: bool) -> Tensor:
        """Inner products [task, task] of all tasks, over all workers; 0 for a task without a loss."""
        step = found.step
        if found.sharded:
            local = products_of_shards(gradients, found.tensors)
        else:
            local = (gradients.averaged(self._workers.mean) if averaged else gradients).gramian()
        products = local / found.factor**2 if found.factor != 1 else local
        if len(step.here) < len(step.names):
            here = torch.tensor(step.here)
            local, products = products, products.new_zeros(len(step.names), len(step.names))
            products[here[:, None], here[None, :]] = local
        if not self._workers.several or averaged or found.sharded:
            return products
        return self._workers.mean_products(products, step.seen.device)

    def _reached(self, found: Found) -> list[list[bool]]:
        """[tensor][task], whether the task's loss, in any worker, reaches the shared tensor."""
        step, tasks = found.step, range(len(found.step.names))
        sets = [{step.here[row] for row in rows} for rows in found.walked.reached]
        reached = [[task in own for task in tasks] for own in sets]
        if self._workers.several:
            reached = self._workers.any(torch.tensor(reached), step.seen.device).tolist()
        found.trained = frozenset(place for place, row in enumerate(reached) if any(row))
        if not found.trained:
            raise InputError(
                "The `shared` parameters should be those that the losses were computed with. Found "
                "that no loss reaches any of them. Build the balancer after the model was wrapped or "
                "sharded, from the wrapped model's parameters."
            )
        return reached

    def _averages_gradients(self, step: Step) -> bool:
        """Whether gradients can be averaged: of parameters, and of the same tasks in all workers."""
        several = self._workers.several and self._average == "gradients"
        return several and not self.by_representation and step.everywhere

    def _rows_of_all(self, local: Tensor, step: Step) -> Tensor:
        """The mean over workers of the gradients [task, number], for the tasks that any worker has."""
        here, tasks = torch.tensor(step.here), torch.tensor(step.tasks)
        rows = local.new_zeros(len(step.names), local.shape[1])
        rows[here.to(local.device)] = local
        return self._workers.mean(rows)[tasks.to(local.device)]

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

    def _below(self, representations: Sequence[Tensor]) -> set[int]:
        """Ids of the parameters that the representations are computed with."""
        if self._encoder:
            return {id(parameter) for parameter in self._encoder}
        return {id(t) for each in survey(representations, ()).leaves for t in each}

    def _keep_output(self, module: nn.Module, inputs: Any, output: Any) -> None:
        parts = output if isinstance(output, tuple | list) else [output]
        for part in parts:
            if isinstance(part, Tensor) and part.requires_grad:
                self._outputs.append(part)


def _between(products: Tensor, tasks: list[int]) -> Tensor:
    """The products [task, task] of some of all tasks."""
    if len(tasks) == len(products):
        return products
    chosen = torch.tensor(tasks)
    return products[chosen[:, None], chosen[None, :]]


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


@dataclass(frozen=True)
class SharedPart:
    """Parameters that the same tasks train."""

    tasks: list[int]  # places among all tasks, ascending
    tensors: list[int]  # places among the shared tensors


def shared_parts(
    reached: Sequence[Sequence[bool]],  # [tensor][task], whether the task's loss reaches the tensor
    sizes: Sequence[int],  # [tensor], its numbers
) -> list[SharedPart]:
    """The parts that two tasks or more train; those of the most tasks, then the largest, first."""
    places: dict[tuple[int, ...], list[int]] = {}
    for tensor, row in enumerate(reached):
        tasks = tuple(task for task, there in enumerate(row) if there)
        if len(tasks) > 1:
            places.setdefault(tasks, []).append(tensor)
    parts = [SharedPart(list(tasks), tensors) for tasks, tensors in places.items()]
    return sorted(
        parts, key=lambda part: (-len(part.tasks), -sum(sizes[n] for n in part.tensors), part.tasks)
    )
