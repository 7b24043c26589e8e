"""What the user hands over in a step, put in order: which tasks have a loss, and its value.

Of several workers with one set of weights, what each measures is averaged before anything is weighed.
`Balanced` is what a balancer tells of a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.distributed as distributed
from torch import Tensor

from taskmix.errors import InputError, ShapeError

Losses = Mapping[str, Tensor | None] | Sequence[Tensor | None]


@dataclass(frozen=True)
class Step:
    """The losses of one step."""

    names: tuple[str, ...]  # of all tasks
    here: list[int]  # places of the tasks that have a loss in this process
    losses: list[Tensor]  # theirs
    seen: Tensor  # [task], values in float32 or better, the mean over workers; 0 where none has one
    present: Tensor | None  # [task], on the CPU, whether there is one; None where all are
    everywhere: bool = True  # whether all workers have losses of the same tasks

    @property
    def tasks(self) -> list[int]:
        """Places of the tasks that have a loss in any worker."""
        if self.present is None:
            return list(range(len(self.names)))
        return [int(place) for place in self.present.nonzero().flatten()]


def read_step(losses: Losses, names: tuple[str, ...] | None, workers: WorkerGroup) -> Step:
    """Puts the losses in the order of `names`, those of earlier steps; new ones come after them."""
    names = _all_names(losses, names, workers)
    values = _in_order(losses, names)
    here = [place for place, loss in enumerate(values) if loss is not None]
    given = [loss for loss in values if loss is not None]
    if not given:
        raise InputError(
            "At least one task should have a loss in a step. Found none. Leave the step out."
        )
    for place, loss in zip(here, given, strict=True):
        if loss.dim() != 0 or not loss.requires_grad:
            _refuse(names[place], loss)
    seen, present = torch.stack(given).detach(), None
    if seen.dtype not in (torch.float32, torch.float64):
        seen = seen.float()
    if len(here) < len(names):
        present = torch.zeros(len(names), dtype=torch.bool)
        present[here] = True
        seen = seen.new_zeros(len(names)).index_copy_(
            0, torch.tensor(here, device=seen.device), seen
        )
    everywhere = True
    if workers.several:
        everyone = torch.ones(len(names), dtype=torch.bool) if present is None else present
        seen, shares = workers.mean_of_present(seen, everyone.to(seen.device))
        everywhere = all(share in (0.0, 1.0) for share in shares)
        present = None if all(shares) else torch.tensor([share > 0 for share in shares])
    return Step(names, here, given, seen, present, everywhere)


def read_values(losses: Losses, names: tuple[str, ...], workers: WorkerGroup) -> Tensor:
    """The values [task] of losses that all tasks have, the mean over workers."""
    _check_known(losses, names)
    values = _in_order(losses, names)
    given = [loss.detach() for loss in values if loss is not None]
    if len(given) < len(names):
        raise InputError(
            f"Every task should have a loss after the step. Found {len(given)} of {len(names)}. "
            "Compute the losses of the same batch again, all of them."
        )
    stacked = torch.stack(given)
    return workers.mean(stacked) if workers.several else stacked


def _all_names(
    losses: Losses, names: tuple[str, ...] | None, workers: WorkerGroup
) -> tuple[str, ...]:
    """The tasks known so far, and those that are first seen in this step."""
    if isinstance(losses, Mapping):
        given = tuple(losses)
    elif isinstance(cast("object", losses), Tensor):
        raise ShapeError(
            "`losses` should be separate scalars, by name or in a list. Found one tensor. Leave "
            "them unstacked: the gradient of one element of a stack runs through every task's graph."
        )
    else:
        given = tuple(str(place) for place in range(len(losses)))
        known = len(names or ())
        if len(given) < known or (names is not None and given[:known] != names):
            given = names or ()  # told in a sentence when they are put in order
    if names is None:
        return workers.union(given) if workers.several else given
    new = tuple(name for name in given if name not in names)
    if new and workers.several:
        raise InputError(
            "Among several workers every task should be named in the first step. Found "
            f"{', '.join(new)} later, which the others cannot know. Give None for a task that has no "
            "loss in a step."
        )
    return (*names, *new)


def _check_known(losses: Losses, names: tuple[str, ...]) -> None:
    unknown = [name for name in losses if name not in names] if isinstance(losses, Mapping) else []
    if unknown:
        raise ShapeError(
            f"The tasks after a step should be among {', '.join(names)}. Found {', '.join(unknown)}. "
            "Compute the losses of the same batch again."
        )


def _in_order(losses: Losses, names: tuple[str, ...]) -> list[Tensor | None]:
    if isinstance(losses, Mapping):
        return [losses.get(name) for name in names]
    if len(losses) != len(names):
        raise ShapeError(
            f"`losses` should have one entry for each of the {len(names)} tasks. Found "
            f"{len(losses)}. Give None for a task that has no loss in this step."
        )
    return list(losses)


def _refuse(name: str, loss: Tensor) -> None:
    if loss.dim() != 0:
        raise ShapeError(
            f"The loss of task `{name}` should be one number. Found shape {tuple(loss.shape)}. "
            "Take its mean."
        )
    raise InputError(
        f"The loss of task `{name}` should depend on parameters that are trained. Found one that "
        "has no gradient. Compute it with gradients enabled, or give None."
    )


class WorkerGroup:
    """All workers of a process group, or this process alone."""

    def __init__(self, group: distributed.ProcessGroup | None = None) -> None:
        self._group = group

    @property
    def several(self) -> bool:
        if not (distributed.is_available() and distributed.is_initialized()):
            return False
        return distributed.get_world_size(self._group) > 1

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all workers."""
        values = values.clone()
        distributed.all_reduce(values, group=self._group)
        return values / distributed.get_world_size(self._group)

    def mean_of_present(self, values: Tensor, present: Tensor) -> tuple[Tensor, list[float]]:
        """The mean [task] over the workers that have a loss of the task, and what share of them has."""
        both = torch.stack([torch.where(present, values, 0.0), present.to(values)])
        distributed.all_reduce(both, group=self._group)
        count = distributed.get_world_size(self._group)
        return both[0] / both[1].clamp(min=1), (both[1] / count).tolist()

    def any(self, flags: Tensor, device: torch.device) -> Tensor:
        """Whether each flag is set in any worker; sent by a device that the group can reach."""
        counts = flags.to(device, torch.float32)
        distributed.all_reduce(counts, group=self._group)
        return (counts > 0).to(flags.device)

    def union(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names that any worker has, those of the first worker first."""
        found: list[tuple[str, ...]] = [()] * distributed.get_world_size(self._group)
        distributed.all_gather_object(found, names, group=self._group)
        return tuple(dict.fromkeys(name for each in found for name in each))

    def mean_products(self, gramian: Tensor, device: torch.device) -> Tensor:
        """The mean of the workers' inner products, summed on a device that the group can reach."""
        # In float64: one worker's products may have needed it, and all must send the same type.
        return self.mean(gramian.double().to(device)).to(gramian.device)


@dataclass(frozen=True)
class Balanced:
    """What a step was made of.

    >>> parameter = torch.ones(2, requires_grad=True)
    >>> info = Balancer(Equal()).backward({"a": parameter[0] * 1, "b": parameter[1] * 3})
    >>> info.names, info.losses.tolist(), info.weights.tolist()
    (('a', 'b'), [1.0, 3.0], [1.0, 1.0])
    >>> info.task_variance.item()  # of 1 and 3
    1.0
    """

    names: tuple[str, ...]
    losses: Tensor  # [task], detached, the mean over workers; NaN where a task had none
    weights: Tensor  # [task]; 0 where a task had none
    present: Tensor | None = None  # [task], whether it had one; None where all had
    gramian: Tensor | None = None  # [task, task], of the tasks that had one, where it was computed

    @property
    def task_variance(self) -> Tensor:
        """The variance between the tasks' losses (BanditMTL, Eq. 3)."""
        losses = self.losses if self.present is None else self.losses[self.present]
        return losses.var(correction=0)

    @property
    def cosines(self) -> Tensor | None:
        """Cosines between the tasks' gradients; below 0 two tasks are in conflict."""
        if self.gramian is None:
            return None
        norms = self.gramian.diagonal().sqrt()
        return self.gramian / norms[:, None] / norms[None, :]
