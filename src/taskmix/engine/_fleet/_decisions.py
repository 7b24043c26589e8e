"""What one member trains on in the next steps, decided ahead: none of its rows depends on the losses.

The rows, the draws, the rewards and the state that a checkpoint keeps are those of a solo run's
`WeightingSteps` and `PolicySteps`.

Steps are decided in blocks: asking a policy and twenty streams for four steps costs as much as asking
them for hundreds, and a fleet asks for a few at a time, for hundreds of members, while its device waits.
What is decided ahead and not yet taken does not show: generator and streams are told as they stand after
the steps that were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.policies import AnyPolicy, AnyReward, Choice, Outcome, draw_many, steps_without_draws
from taskmix.tasks import EncodedTasks
from taskmix.training import Stream, batch_costs, input_groups, make_stream
from taskmix.weighting import AnyLossWeighting, Balancer, Equal, FixedWeights

BLOCK = 256  # steps: 8 rows of each of 512 members are 8 MB


class Draws:
    """The draws of a policy that learns nothing, and the rows of the streams that they are from."""

    def __init__(
        self,
        streams: Sequence[Stream],  # [slot]
        shares: NDArray[np.float64],  # [slot]
        generator: np.random.Generator,
        *,
        ahead: bool,  # whether nobody else draws from the generator
    ) -> None:
        self._streams = streams
        self._shares = shares
        self._generator = generator
        self._block = BLOCK if ahead else 0
        self._slots: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # [step], of the block
        self._rows = torch.empty(0, 0, dtype=torch.long)  # [step, row], -1 where there is none
        self._taken = 0  # steps of the block
        self._before: tuple[Any, list[tuple[int, int]]] = (None, [])  # the state before the block

    def take(self, count: int, rows: Tensor) -> NDArray[np.int64]:
        """The slots of the next steps [step]; their rows go into `rows` [step, row]."""
        parts, done = [], 0
        while done < count:
            if self._taken == len(self._slots):
                self._decide(max(self._block, count - done))
            size = min(count - done, len(self._slots) - self._taken)
            here = slice(self._taken, self._taken + size)
            rows[done : done + size, : self._rows.shape[1]] = self._rows[here]
            parts.append(self._slots[here])
            done, self._taken = done + size, self._taken + size
        return np.concatenate(parts) if parts else self._slots[:0]

    def _decide(self, count: int) -> None:
        self._before = (self._generator.bit_generator.state, self._at_end())
        self._slots, self._taken = draw_many(self._shares, self._generator, count), 0
        widest = max(stream.batch_size for stream in self._streams)
        self._rows = torch.full((count, widest), -1)
        for slot in np.unique(self._slots).tolist():
            steps, stream = np.flatnonzero(self._slots == slot), self._streams[slot]
            self._rows[torch.from_numpy(steps), : stream.batch_size] = stream.take_many(len(steps))

    def _at_end(self) -> list[tuple[int, int]]:
        return [stream.position for stream in self._streams]

    @property
    def positions(self) -> list[tuple[int, int]]:
        """[slot], of the streams after the steps that were taken."""
        if self._taken == len(self._slots):
            return self._at_end()
        visits = np.bincount(self._slots[: self._taken], minlength=len(self._streams)).tolist()
        return [
            stream.after(position, batches)
            for stream, position, batches in zip(
                self._streams, self._before[1], visits, strict=True
            )
        ]

    @property
    def generator_state(self) -> Any:
        """Of the generator after the steps that were taken."""
        if self._taken == len(self._slots):
            return self._generator.bit_generator.state
        again = type(self._generator.bit_generator)()
        again.state = self._before[0]
        draw_many(self._shares, np.random.Generator(again), self._taken)
        return again.state

    def move_to(self, positions: Sequence[Sequence[int]], generator_state: Any) -> None:
        """Goes on from there; what was decided ahead is forgotten."""
        self._generator.bit_generator.state = generator_state
        for stream, (number, place) in zip(self._streams, positions, strict=True):
            stream.move_to((number, place))
        self._slots, self._taken = self._slots[:0], 0


CPU = torch.device("cpu")


class Decision(Protocol):
    """A member's share in the steps to come."""

    groups: list[list[int]]  # the slots of each batch of a step; with a policy, of the one batch
    sizes: list[int]  # [slot], rows of its batch
    free_until: float  # the step from which on each has to be learned from before the next

    def take(self, count: int, rows: Tensor) -> NDArray[np.int64] | None:
        """Fills in the rows [step, group, row] of the next steps; the slots drawn, [step]."""
        ...

    def learn(
        self, losses: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> dict[str, Any]:
        """Hears the losses and weights [step, slot] of the steps taken; their columns of a record."""
        ...

    def slot_at(self, step: int) -> int:
        """The (first) slot that one of the steps taken trained on."""
        ...

    def measured(self, scores: dict[int, float]) -> None: ...

    def state(self, steps: int) -> dict[str, Any]: ...
    def restore(self, tree: dict[str, Any]) -> None: ...


class AllTasks:
    """Every task every step, each with the weight that a function of the losses gives it."""

    free_until = math.inf

    def __init__(
        self, tasks: EncodedTasks, weighting: AnyLossWeighting, *, batch_size: int, seed: int
    ) -> None:
        self.groups = input_groups(tasks)
        self._streams = [
            make_stream(tasks, group, group[0], batch_size=batch_size, seed=seed, device=CPU)
            for group in self.groups
        ]
        self._longest = max(self._streams, key=len)
        self.sizes = [0] * len(tasks)
        for group, stream in zip(self.groups, self._streams, strict=True):
            for slot in group:
                self.sizes[slot] = stream.batch_size
        self.method = weighting
        nothing = torch.zeros(len(tasks))
        self.method_state: Any = weighting.init(nothing)
        # [slot], where they never change; None where they depend on the losses.
        self.weights: Tensor | None = None
        if isinstance(weighting, Equal | FixedWeights):
            self.weights = weighting.weigh(self.method_state, nothing)
        self.epoch_ends: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)  # [step], of those taken

    def take(self, count: int, rows: Tensor) -> None:
        begin, place = self._longest.position
        begin = begin * len(self._longest) + place  # rows so far, of all passes
        seen = begin + self._longest.batch_size * np.arange(count + 1)
        self.epoch_ends = np.diff(seen // len(self._longest)) > 0
        for group, stream in enumerate(self._streams):
            rows[:, group, : stream.batch_size] = stream.take_many(count)

    def learn(
        self, losses: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> dict[str, Any]:
        count, slots = losses.shape
        if weights is None:
            assert self.weights is not None
            weights = np.tile(self.weights.numpy().astype(np.float64), (count, 1))
        return {
            "tasks": np.tile(np.arange(slots), count),
            "loss": losses.ravel(),
            "weight": weights.ravel(),
            "examples": np.tile(np.array(self.sizes), count),
        }

    def slot_at(self, step: int) -> int:
        return 0

    def measured(self, scores: dict[int, float]) -> None:
        """A weighting learns from training alone."""

    def state(self, steps: int) -> dict[str, Any]:
        balancer = Balancer(self.method).state_dict()
        if steps:
            balancer |= {
                "names": [str(slot) for slot in range(len(self.sizes))],
                "state": state_to_tree(self.method_state),
                "steps": steps,
            }
        return {
            "weighting": balancer,
            "streams": [list(stream.position) for stream in self._streams],
        }

    def restore(self, tree: dict[str, Any]) -> None:
        saved = tree["weighting"]["state"]
        if saved is not None:
            self.method_state = state_from_tree(saved, like=self.method_state)
        for stream, position in zip(self._streams, tree["streams"], strict=True):
            stream.move_to((position[0], position[1]))


class OneTask:
    """One task a step, drawn by a policy that learns nothing; a reward may say what it was worth."""

    def __init__(
        self,
        tasks: EncodedTasks,
        policy: AnyPolicy,
        reward: AnyReward | None,
        generator: np.random.Generator,
        *,
        batch_size: int,
        seed: int,
    ) -> None:
        self.groups = [list(range(len(tasks)))]
        streams = [
            make_stream(tasks, [slot], slot, batch_size=batch_size, seed=seed, device=CPU)
            for slot in range(len(tasks))
        ]
        self.sizes = [stream.batch_size for stream in streams]
        self._tasks = tasks
        self._generator = generator
        self._policy_state = policy.init(tasks.sizes)
        self._shares = policy.probabilities(self._policy_state)
        # A reward that draws does so between two draws of the policy.
        self._draws = Draws(streams, self._shares, generator, ahead=reward is None)
        self._reward = reward
        self._reward_state = None if reward is None else reward.init(len(tasks))
        self.free_until = math.inf if reward is None else steps_without_draws(reward)
        self._drawn: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # of the steps last taken
        self._costs: NDArray[np.float64] = np.empty(0)  # theirs, where a reward may ask
        self._learned = True  # whether they have been learned from
        self._latest: list[float | None] = [None] * len(tasks)
        self._scores: list[float | None] = [None] * len(tasks)
        self._told: NDArray[np.float64] | None = None

    def take(self, count: int, rows: Tensor) -> NDArray[np.int64]:
        drawn = self._draws.take(count, rows[:, 0])
        costs = np.zeros(count)
        for slot in [] if self._reward is None else np.unique(drawn).tolist():
            steps = np.flatnonzero(drawn == slot)
            taken = rows[torch.from_numpy(steps), 0, : self.sizes[slot]]
            costs[steps] = batch_costs(self._tasks[slot].splits["train"].inputs, taken)
        earlier = (
            (self._drawn[:0], self._costs[:0]) if self._learned else (self._drawn, self._costs)
        )
        self._drawn = np.concatenate([earlier[0], drawn])
        self._costs = np.concatenate([earlier[1], costs])
        self._learned = False
        return drawn

    def slot_at(self, step: int) -> int:
        return int(self._drawn[step])

    def learn(
        self, losses: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> dict[str, Any]:
        drawn, values = self._drawn[: len(losses)], losses[:, 0]
        self._learned, self._told = True, self._shares
        columns: dict[str, Any] = {
            "tasks": drawn,
            "loss": values,
            "probability": self._shares[drawn],
            "probabilities": self._shares,
            "examples": np.array(self.sizes)[drawn],
        }
        if self._reward is not None:
            columns["reward"] = self._rewards(self._reward, drawn, values)
        for slot in np.unique(drawn).tolist():
            self._latest[slot] = float(values[drawn == slot][-1])
            self._scores[slot] = None  # its outcome has been told
        return columns

    def _rewards(
        self, reward: AnyReward, drawn: NDArray[np.int64], losses: NDArray[np.float64]
    ) -> list[float | None]:
        """What each of the steps was worth, [step]."""
        latest, scores = list(self._latest), list(self._scores)
        shares = self._shares.tolist()
        found = []
        for slot, loss, cost in zip(
            drawn.tolist(), losses.tolist(), self._costs.tolist(), strict=False
        ):
            outcome = Outcome(
                Choice(slot, shares[slot]), loss, latest[slot], cost=cost, score=scores[slot]
            )
            worth, self._reward_state = reward.observe(self._reward_state, outcome, self._generator)
            found.append(worth)
            latest[slot], scores[slot] = loss, None
        return found

    def measured(self, scores: dict[int, float]) -> None:
        for slot, score in scores.items():
            self._scores[slot] = score

    def state(self, steps: int) -> dict[str, Any]:
        return {
            "policy": state_to_tree(self._policy_state),
            "reward": state_to_tree(self._reward_state),
            "generator": self._draws.generator_state,
            "streams": [list(position) for position in self._draws.positions],
            "latest": list(self._latest),
            "scores": list(self._scores),
            "told": self._told,
        }

    def restore(self, tree: dict[str, Any]) -> None:
        self._reward_state = state_from_tree(tree["reward"], like=self._reward_state)
        self._draws.move_to(tree["streams"], tree["generator"])
        self._latest, self._scores = list(tree["latest"]), list(tree["scores"])
        self._told = tree["told"]
