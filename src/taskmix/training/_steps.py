"""The two ways of multitask training: one task a step by a policy, or all tasks by a weighting."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taskmix.errors import DivergedError, InputError
from taskmix.models import HardSharing, SharedCode
from taskmix.policies import AnyPolicy, AnyReward, Outcome
from taskmix.tasks import MISSING, EncodedTasks
from taskmix.training._events import StepEvent
from taskmix.training._losses import LossFunction
from taskmix.training._state import state_from_tree, state_to_tree
from taskmix.training._streams import Stream, mix
from taskmix.weighting import AnyWeighting, Balancer, Needs


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

    def seed_step(self, step: int) -> None:
        """Makes dropout a function of (seed, step): resuming needs no random state of torch."""
        seed = mix(self.seed, step)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.manual_seed(seed)

    def autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type, self.precision, enabled=self.precision != torch.float32
        )

    def descend(self, loss: Tensor) -> None:
        """One step of the optimiser down this loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.move()

    def move(self) -> None:
        """One step of the optimiser down the gradients that are there."""
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()

    def stream(self, members: Sequence[int], number: int) -> Stream:
        """The rows of `members`, tasks with the same inputs, that have a target of any of them."""
        rows: Tensor | None = None
        for position in members:
            targets = self.tasks[position].splits["train"].targets
            known = ~targets.isnan() if targets.is_floating_point() else targets != MISSING
            known = known.flatten(1).any(dim=1) if known.dim() > 1 else known
            rows = known if rows is None else rows | known
        places = rows.nonzero().flatten().cpu() if rows is not None else torch.empty(0)
        if not len(places):
            names = ", ".join(self.tasks[position].name for position in members)
            raise InputError(
                f"Every task should have rows with a target to train on. Found none for {names}. "
                "Leave the task out, or give it a train split."
            )
        return Stream(places, self.batch_size, seed=self.seed, number=number, device=self.device)


class Steps(Protocol):
    """Takes steps, and can be put where it was."""

    def take(self, step: int) -> StepEvent: ...
    def measured(self, scores: Mapping[int, float]) -> None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, tree: dict[str, Any]) -> None: ...


class PolicySteps:
    """One task a step: the policy draws it, the optimiser descends its loss alone."""

    def __init__(
        self,
        machinery: Machinery,
        policy: AnyPolicy,
        reward: AnyReward | None,
        generator: np.random.Generator,
    ) -> None:
        self._do = machinery
        self._policy = policy
        self._reward = reward
        self._generator = generator
        count = len(machinery.tasks)
        self._policy_state = policy.init(machinery.tasks.sizes)
        self._reward_state = reward.init(count) if reward is not None else None
        self._streams = [machinery.stream([position], position) for position in range(count)]
        self._latest: list[float | None] = [None] * count  # each task's loss at its last visit
        self._scores: list[float | None] = [None] * count  # dev scores no outcome has told yet
        self._told: NDArray[np.float64] | None = None

    def take(self, step: int) -> StepEvent:
        begin = time.perf_counter()
        probabilities = self._policy.probabilities(self._policy_state)
        choice = self._policy.select(self._policy_state, self._generator)
        task = choice.task
        rows = self._streams[task].take()
        split = self._do.tasks[task].splits["train"]
        batch, targets = split.inputs.batch(rows), split.targets[rows]

        self._do.seed_step(step)
        loss = self._loss(batch, targets, task)
        self._do.descend(loss)
        value = loss.item()
        _must_be_finite(value, step, self._do.tasks[task].name)
        after = None
        if self._reward is not None and self._reward.needs_loss_after:
            self._do.seed_step(step)  # the same dropout as before the step
            with torch.no_grad():
                after = self._loss(batch, targets, task).item()

        outcome = Outcome(
            choice,
            value,
            previous_loss=self._latest[task],
            loss_after=after,
            cost=_elements(batch),
            score=self._scores[task],
        )
        self._scores[task] = None
        reward = None
        if self._reward is not None:
            reward, self._reward_state = self._reward.observe(
                self._reward_state, outcome, self._generator
            )
            outcome = replace(outcome, reward=reward)
        self._policy_state = self._policy.update(self._policy_state, outcome)
        self._latest[task] = value
        return StepEvent(
            step=step,
            tasks=(task,),
            losses=(value,),
            examples=(len(rows),),
            seconds=time.perf_counter() - begin,
            probability=choice.probability,
            probabilities=self._tell(probabilities),
            reward=reward,
            loss_after=after,
        )

    def measured(self, scores: Mapping[int, float]) -> None:
        """Dev scores, higher is better; each is told with its task's next outcome."""
        for task, score in scores.items():
            self._scores[task] = score

    def _loss(self, batch: Any, targets: Tensor, task: int) -> Tensor:
        with self._do.autocast():
            return self._do.losses[task](self._do.model(batch, task), targets)

    def _tell(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The vector where it differs from the one told last."""
        if self._told is probabilities or (
            self._told is not None and np.array_equal(self._told, probabilities)
        ):
            return None
        self._told = probabilities
        return probabilities

    def state(self) -> dict[str, Any]:
        return {
            "policy": state_to_tree(self._policy_state),
            "reward": state_to_tree(self._reward_state),
            "generator": self._generator.bit_generator.state,
            "streams": [list(stream.position) for stream in self._streams],
            "latest": list(self._latest),
            "scores": list(self._scores),
            "told": self._told,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self._policy_state = state_from_tree(self._policy_state, tree["policy"])
        self._reward_state = state_from_tree(self._reward_state, tree["reward"])
        self._generator.bit_generator.state = tree["generator"]
        for stream, position in zip(self._streams, tree["streams"], strict=True):
            stream.move_to((position[0], position[1]))
        self._latest = list(tree["latest"])
        self._scores = list(tree["scores"])
        self._told = tree["told"]


@dataclass(frozen=True)
class _Batch:
    """Rows of inputs that some tasks share."""

    tasks: list[int]
    rows: Tensor
    inputs: Any


class WeightingSteps:
    """All tasks every step: each brings a batch, and the weighted sum of the losses is descended.

    Tasks that share their inputs get the same rows, which are encoded once. Methods that compare the
    tasks' gradients are given those of the encoder. One that wants the losses after the step gets a
    second forward pass of the same batches with the same dropout; one that counts epochs hears of an
    epoch's end whenever the inputs with the most rows have been passed through.
    """

    def __init__(self, machinery: Machinery, weighting: AnyWeighting) -> None:
        self._do = machinery
        encoder = machinery.model.encoder
        self._balancer = Balancer(
            weighting, shared=encoder, last_layer=getattr(encoder, "last_layer", None)
        )
        groups: dict[int, list[int]] = {}
        for position, task in enumerate(machinery.tasks):
            groups.setdefault(id(task.splits["train"].inputs), []).append(position)
        self._groups = list(groups.values())
        self._streams = [machinery.stream(group, group[0]) for group in self._groups]
        self._longest = max(self._streams, key=len)

    def take(self, step: int) -> StepEvent:
        begin = time.perf_counter()
        epochs = self._longest.completed
        batches = [self._batch(*pair) for pair in zip(self._groups, self._streams, strict=True)]
        needs = self._balancer.needs
        self._do.seed_step(step)
        codes, losses = self._forward(batches)
        self._do.optimizer.zero_grad(set_to_none=True)
        balanced = self._balancer.backward(
            losses, representation=codes if Needs.REPRESENTATION in needs else None
        )
        self._do.move()
        values, weights = torch.stack([balanced.losses, balanced.weights]).tolist()
        for position, value in enumerate(values):
            _must_be_finite(value, step, self._do.tasks[position].name)
        if Needs.LOSSES_AFTER in needs:
            self._do.seed_step(step)  # the same dropout as before the step
            with torch.no_grad():
                self._balancer.after_step(self._forward(batches)[1])
        if self._longest.completed > epochs:
            self._balancer.end_epoch()
        examples = {place: len(batch.rows) for batch in batches for place in batch.tasks}
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
        return _Batch(tasks, rows, self._do.tasks[tasks[0]].splits["train"].inputs.batch(rows))

    def _forward(self, batches: Sequence[_Batch]) -> tuple[list[Tensor], list[Tensor]]:
        """The shared code of each batch, and each task's loss."""
        codes = []
        losses: list[Tensor] = [torch.empty(0)] * len(self._do.tasks)
        with self._do.autocast():
            for batch in batches:
                code = self._do.model.encoder(batch.inputs)
                codes.append(code.shared if isinstance(code, SharedCode) else code)
                for place in batch.tasks:
                    targets = self._do.tasks[place].splits["train"].targets[batch.rows]
                    outputs = self._do.model.heads[place](code)
                    losses[place] = self._do.losses[place](outputs, targets)
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


def _must_be_finite(loss: float, step: int, task: str) -> None:
    if not math.isfinite(loss):
        raise DivergedError(step=step, task=task, loss=loss, checkpoint=None)


def _elements(batch: Any) -> float:
    """How many numbers the encoder reads: the cost of a step that depends on the batch alone."""
    if isinstance(batch, Tensor):
        return float(batch.numel())
    if isinstance(batch, dict):
        return float(batch["input_ids"].numel()) if "input_ids" in batch else 1.0
    if isinstance(batch, tuple):
        return float(sum(_elements(part) for part in batch))
    return 1.0
