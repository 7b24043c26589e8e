"""What one member trains on in the next steps, decided ahead: nothing of it depends on the losses.

The rows, the draws and the state that a checkpoint keeps are those of a solo run's
`WeightingSteps` and `PolicySteps`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.numerics import state_to_tree
from taskmix.policies import AnyPolicy, draw_many
from taskmix.tasks import EncodedTasks
from taskmix.training import input_groups, make_stream
from taskmix.weighting import AnyLossWeighting, Balancer

CPU = torch.device("cpu")


class Decision(Protocol):
    """A member's share in the steps to come."""

    groups: list[list[int]]  # the slots of each batch of a step; with a policy, of the one batch
    sizes: list[int]  # [slot], rows of its batch
    weights: Tensor  # [slot], what its loss counts

    def take(self, count: int, rows: Tensor) -> NDArray[np.int64] | None:
        """Fills in the rows [step, group, row] of the next steps; the slots drawn, [step]."""
        ...

    def learn(self, losses: NDArray[np.float64]) -> None:
        """Hears the losses [step, slot] of the steps taken."""
        ...

    def slot_at(self, step: int) -> int:
        """The (first) slot that one of the steps taken trained on."""
        ...

    def measured(self, scores: dict[int, float]) -> None: ...

    def columns(self, losses: NDArray[np.float64], first: int, seconds: float) -> dict[str, Any]:
        """The steps taken, from step `first` on, as columns of a record."""
        ...

    def state(self, steps: int) -> dict[str, Any]: ...
    def restore(self, tree: dict[str, Any]) -> None: ...


class AllTasks:
    """Every task every step, under weights that do not depend on the losses."""

    def __init__(
        self, tasks: EncodedTasks, weighting: AnyLossWeighting, *, batch_size: int, seed: int
    ) -> None:
        self.groups = input_groups(tasks)
        self._streams = [
            make_stream(tasks, group, group[0], batch_size=batch_size, seed=seed, device=CPU)
            for group in self.groups
        ]
        self.sizes = [0] * len(tasks)
        for group, stream in zip(self.groups, self._streams, strict=True):
            for slot in group:
                self.sizes[slot] = stream.batch_size
        self._weighting = weighting
        nothing = torch.zeros(len(tasks))
        self.weights = weighting.weigh(weighting.init(nothing), nothing)

    def take(self, count: int, rows: Tensor) -> None:
        for group, stream in enumerate(self._streams):
            rows[:, group, : stream.batch_size] = stream.take_many(count)

    def learn(self, losses: NDArray[np.float64]) -> None:
        """Nothing."""

    def slot_at(self, step: int) -> int:
        return 0

    def measured(self, scores: dict[int, float]) -> None:
        """A weighting learns from training alone."""

    def columns(self, losses: NDArray[np.float64], first: int, seconds: float) -> dict[str, Any]:
        count, slots = losses.shape
        return {
            "steps": np.repeat(np.arange(first, first + count), slots),
            "tasks": np.tile(np.arange(slots), count),
            "loss": losses.ravel(),
            "weight": np.tile(self.weights.numpy().astype(np.float64), count),
            "seconds": seconds / slots,
            "examples": np.tile(np.array(self.sizes), count),
        }

    def state(self, steps: int) -> dict[str, Any]:
        balancer = Balancer(self._weighting).state_dict()
        if steps:
            balancer |= {"names": [str(slot) for slot in range(len(self.sizes))], "steps": steps}
        return {
            "weighting": balancer,
            "streams": [list(stream.position) for stream in self._streams],
        }

    def restore(self, tree: dict[str, Any]) -> None:
        for stream, position in zip(self._streams, tree["streams"], strict=True):
            stream.move_to((position[0], position[1]))


class OneTask:
    """One task a step, drawn by a policy that learns nothing."""

    def __init__(
        self,
        tasks: EncodedTasks,
        policy: AnyPolicy,
        generator: np.random.Generator,
        *,
        batch_size: int,
        seed: int,
    ) -> None:
        self.groups = [list(range(len(tasks)))]
        self._streams = [
            make_stream(tasks, [slot], slot, batch_size=batch_size, seed=seed, device=CPU)
            for slot in range(len(tasks))
        ]
        self.sizes = [stream.batch_size for stream in self._streams]
        self.weights = torch.ones(len(tasks))
        self._generator = generator
        self._policy_state = policy.init(tasks.sizes)
        self._shares = policy.probabilities(self._policy_state)
        self._drawn: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._latest: list[float | None] = [None] * len(tasks)
        self._scores: list[float | None] = [None] * len(tasks)
        self._told: NDArray[np.float64] | None = None

    def take(self, count: int, rows: Tensor) -> NDArray[np.int64]:
        self._drawn = draw_many(self._shares, self._generator, count)
        for slot in np.unique(self._drawn).tolist():
            steps = torch.from_numpy(np.flatnonzero(self._drawn == slot))
            rows[steps, 0, : self.sizes[slot]] = self._streams[slot].take_many(len(steps))
        return self._drawn

    def slot_at(self, step: int) -> int:
        return int(self._drawn[step])

    def learn(self, losses: NDArray[np.float64]) -> None:
        for slot in np.unique(self._drawn).tolist():
            self._latest[slot] = float(losses[self._drawn == slot][-1, 0])
            self._scores[slot] = None  # its outcome has been told
        self._told = self._shares

    def measured(self, scores: dict[int, float]) -> None:
        for slot, score in scores.items():
            self._scores[slot] = score

    def columns(self, losses: NDArray[np.float64], first: int, seconds: float) -> dict[str, Any]:
        drawn = self._drawn[: len(losses)]
        return {
            "steps": np.arange(first, first + len(drawn)),
            "tasks": drawn,
            "loss": losses.ravel(),
            "probability": self._shares[drawn],
            "probabilities": self._shares,
            "seconds": seconds,
            "examples": np.array(self.sizes)[drawn],
        }

    def state(self, steps: int) -> dict[str, Any]:
        return {
            "policy": state_to_tree(self._policy_state),
            "reward": None,
            "generator": self._generator.bit_generator.state,
            "streams": [list(stream.position) for stream in self._streams],
            "latest": list(self._latest),
            "scores": list(self._scores),
            "told": self._told,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self._generator.bit_generator.state = tree["generator"]
        for stream, position in zip(self._streams, tree["streams"], strict=True):
            stream.move_to((position[0], position[1]))
        self._latest, self._scores = list(tree["latest"]), list(tree["scores"])
        self._told = tree["told"]
