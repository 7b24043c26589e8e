"""What the user hands over in a step, put in order: which tasks have a loss, and its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from taskmix.errors import InputError, ShapeError
from taskmix.weighting._workers import WorkerGroup

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
