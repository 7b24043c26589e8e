"""What both ways of multitask training share: the model, its optimiser and the streams of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from taskmix.errors import DivergedError, InputError
from taskmix.models import HardSharing
from taskmix.tasks import EncodedTasks
from taskmix.training._events import StepEvent
from taskmix.training._losses import LossFunction
from taskmix.training._ranks import Ranks
from taskmix.training._streams import Stream, mixed_seed


class Scheduler(Protocol):
    """PyTorch's schedulers, as far as the loop calls them."""

    def step(self) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Machinery:
    """What both ways of training share."""

    model: HardSharing
    tasks: EncodedTasks
    losses: Sequence[LossFunction]
    optimizer: torch.optim.Optimizer
    scheduler: Scheduler | None
    batch_size: int
    clip_norm: float | None
    precision: torch.dtype
    device: torch.device
    seed: int
    ranks: Ranks = field(default_factory=Ranks)

    def seed_step(self, step: int) -> None:
        """Makes dropout a function of (seed, step): resuming needs no random state of torch."""
        rank = self.ranks.rank
        seed = mixed_seed(self.seed, step, rank) if rank else mixed_seed(self.seed, step)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.manual_seed(seed)

    def autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type, self.precision, enabled=self.precision != torch.float32
        )

    def loss(self, task: int, outputs: Tensor, targets: Tensor, share: float) -> Tensor:
        """A task's loss on this process's rows, times what it counts in the batch's."""
        loss = self.losses[task](outputs, targets)
        return loss if share == 1 else loss * share

    def step_optimizer(self) -> None:
        """One step of the optimiser down the gradients that are there."""
        self.ranks.average_gradients(self.model.parameters())
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()

    def stream(self, members: Sequence[int], number: int) -> Stream:
        """The rows of `members`, tasks with the same inputs, that have a target of any of them."""
        return make_stream(
            self.tasks,
            members,
            number,
            batch_size=self.batch_size,
            seed=self.seed,
            device=self.device,
        )


def make_stream(
    tasks: EncodedTasks,
    members: Sequence[int],  # positions of tasks with the same inputs
    number: int,
    *,
    batch_size: int,
    seed: int,
    device: torch.device,
) -> Stream:
    """Batches of the rows that have a target of any of these tasks.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"train": (np.eye(3), ["no", "yes", "yes"])}})
    >>> cpu = torch.device("cpu")
    >>> stream = make_stream(encoding.encode(tasks), [0], 0, batch_size=2, seed=0, device=cpu)
    >>> len(stream), len(stream.take())
    (3, 2)
    """
    first, *others = (tasks[position].splits["train"] for position in members)
    places = first.places
    if others:
        together = torch.stack([split.has_target for split in (first, *others)]).any(dim=0)
        places = together.nonzero().flatten().cpu()
    if not len(places):
        names = ", ".join(tasks[position].name for position in members)
        raise InputError(
            f"Every task should have rows with a target to train on. Found none for {names}. "
            "Leave the task out, or give it a train split."
        )
    return Stream(places, batch_size, seed=seed, number=number, device=device)


def input_groups(tasks: EncodedTasks) -> list[list[int]]:
    """The positions of the tasks that train on the same inputs, which a step encodes once.

    >>> from taskmix.tasks import EncodedTasks, held_tasks
    >>> tasks, encoding = held_tasks({name: {"train": (np.eye(2), ["no", "yes"])} for name in "ab"})
    >>> encoded = encoding.encode(tasks)
    >>> input_groups(encoded), input_groups(EncodedTasks((encoded[0], encoded[0])))
    ([[0], [1]], [[0, 1]])
    """
    groups: dict[int, list[int]] = {}
    for position, task in enumerate(tasks):
        groups.setdefault(id(task.splits["train"].inputs), []).append(position)
    return list(groups.values())


def sparse_tasks(tasks: EncodedTasks, groups: Sequence[Sequence[int]]) -> frozenset[int]:
    """The positions of tasks that some rows have no target of, which others in their group have.

    A batch of the group may then have no target of such a task at all.

    >>> from taskmix.tasks import held_tasks
    >>> tasks, encoding = held_tasks({"a": {"train": (np.eye(3), ["no", "yes", "yes"])}})
    >>> sparse_tasks(encoding.encode(tasks), [[0]])
    frozenset()
    """
    found: set[int] = set()
    for group in groups:
        if len(group) > 1:
            known = [tasks[place].splits["train"].has_target for place in group]
            used = torch.stack(known).any(dim=0)
            found |= {
                place
                for place, each in zip(group, known, strict=True)
                if not bool((each | ~used).all())
            }
    return frozenset(found)


class TrainingSteps(Protocol):
    """Takes steps, and can be put where it was."""

    def take(self, step: int) -> StepEvent: ...
    def measured(self, scores: Mapping[int, float]) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, tree: dict[str, Any]) -> None: ...


def must_be_finite(loss: float, step: int, task: str) -> None:
    """Raises where a run cannot go on from this loss."""
    if not math.isfinite(loss):
        raise DivergedError(step=step, task=task, loss=loss, checkpoint=None)
