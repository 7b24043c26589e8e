"""A policy outside our own loop: what it has learned from losses so far, and the log of it.

Several processes learn the same: every process makes the same draws and trains some of them. Each tells
the others the draw and the loss of its batch; all then learn from all of them in the order of the draws.
A checksum of the draws made so far comes along: processes that have drifted apart are refused, not
averaged.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
from numpy.typing import NDArray
from torch import Tensor

from taskmix.errors import OptionError, RunError
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.policies import AnyPolicy, AnyReward, Choice, Outcome, Sizes
from taskmix.records import RecordWriter

WAIT = timedelta(
    minutes=10
)  # for the slowest process; a process that never comes ends the run then


@dataclass(frozen=True, slots=True)
class ReportedLoss:
    """The mean loss of some rows of one draw."""

    draw: int
    loss: float
    rows: int


def combined(told: Sequence[ReportedLoss]) -> list[ReportedLoss]:
    """One entry a draw, in their order: a batch may have been cut up over several processes."""
    by_draw: dict[int, list[ReportedLoss]] = {}
    for each in told:
        by_draw.setdefault(each.draw, []).append(each)
    found = []
    for number in sorted(by_draw):
        parts = by_draw[number]
        rows = sum(part.rows for part in parts)
        loss = sum(part.loss * (part.rows / rows) for part in parts)
        found.append(ReportedLoss(number, loss, rows))
    return found


class Gathering:
    """Shares what each process observed with all of them; one process alone has nothing to share."""

    def __init__(self) -> None:
        self._hosts: Any = None  # a group of the hosts: no device is waited for

    def __getstate__(self) -> dict[str, Any]:
        return {"_hosts": None}  # a worker has no part in it

    def everyone(self, rows: Sequence[Sequence[float]], *, checksum: int) -> list[list[float]]:
        """The rows of all processes, those of the first process first."""
        count = process_count()
        if count == 1:
            return [list(row) for row in rows]
        mine = torch.tensor([[float(checksum), *row] for row in rows], dtype=torch.float64)
        try:
            if self._hosts is None:
                self._hosts = distributed.new_group(backend="gloo", timeout=WAIT)
            lengths = self._gather(torch.tensor([len(rows)]), count)
            longest = int(max(lengths))
            padded = torch.nn.functional.pad(mine, (0, 0, 0, longest - len(mine)))
            tables = self._gather(padded, count)
        except RuntimeError as error:
            raise RunError(
                f"Each of the {count} processes should call `observe` after each of its batches. Found "
                f"one that did not, or that ended ({error}). Call it in every process, not only in "
                "the first."
            ) from error
        found = [
            row for table, own in zip(tables, lengths, strict=True) for row in table[: int(own)]
        ]
        if len({float(row[0]) for row in found}) > 1:
            raise RunError(
                "Every process should make the same draws. Found processes that drew differently. "
                "Give each the same seed, policy and tasks, change shares in all of them alike, and "
                "let the loader share the batches out (`accelerator.prepare`, or `processes`)."
            )
        return [row[1:].tolist() for row in found]

    def _gather(self, mine: Tensor, count: int) -> list[Tensor]:
        found = [torch.empty_like(mine) for _ in range(count)]
        distributed.all_gather(found, mine, group=self._hosts)
        return found


def process_index() -> int:
    """Which process this is, of those that train one model."""
    return distributed.get_rank() if _is_initialized() else 0


def process_count() -> int:
    """How many processes train one model."""
    if _is_initialized():
        return distributed.get_world_size()
    announced = os.environ.get("WORLD_SIZE", "1")
    if announced.isdigit() and int(announced) > 1:
        raise RunError(
            "The processes should be able to tell each other their losses. Found WORLD_SIZE="
            f"{announced} and no process group. Call `torch.distributed.init_process_group` or make "
            "an `Accelerator` first; unset WORLD_SIZE where the processes train models of their own."
        )
    return 1


def _is_initialized() -> bool:
    return distributed.is_available() and distributed.is_initialized()


class Learner:
    """Hears the loss of each choice, in any order; several processes that hear the same are alike."""

    def __init__(
        self,
        policy: AnyPolicy,
        sizes: Sizes,
        *,
        seed: int,
        reward: AnyReward | None,
        record: RecordWriter | None,
    ) -> None:
        if reward is not None and reward.needs_loss_after:
            raise OptionError(
                f"The reward should need no loss after the step, which only our own loop measures. "
                f"Found {type(reward).__name__}. `HardProgress` needs none."
            )
        self.policy, self._reward, self._record = policy, reward, record
        self.state = policy.init(sizes)
        self._reward_state = reward.init(len(sizes)) if reward is not None else None
        # One of its own: what is drawn does not depend on how many losses were heard in between.
        self._generator = np.random.default_rng([seed, 1])
        self._latest: list[float | None] = [None] * len(sizes)
        self.observed = 0
        self._clock = time.perf_counter()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_record": None}  # a worker writes none

    @property
    def probabilities(self) -> NDArray[np.float64]:
        return self.policy.probabilities(self.state)

    def learn(
        self, choice: Choice, probabilities: NDArray[np.float64], loss: float, *, examples: int
    ) -> None:
        """A loss that is not finite is logged, has no reward and teaches nothing."""
        previous = self._latest[choice.task]
        outcome = Outcome(choice, loss, previous, cost=float(examples))
        reward = None
        if math.isfinite(loss):
            if self._reward is not None:
                reward, self._reward_state = self._reward.observe(
                    self._reward_state, outcome, self._generator
                )
            outcome = Outcome(choice, loss, previous, cost=outcome.cost, reward=reward)
            self._latest[choice.task] = loss
        self.state = self.policy.update(self.state, outcome)
        self.observed += 1
        now = time.perf_counter()
        if self._record is not None and process_index() == 0:
            self._record.add_step(
                self.observed,
                choice.task,
                probability=choice.probability,
                probabilities=probabilities,
                loss=loss,
                reward=reward,
                weight=None,
                seconds=now - self._clock,
                examples=examples,
            )
        self._clock = now

    def state_dict(self) -> dict[str, Any]:
        return {
            "policy": state_to_tree(self.state),
            "reward": state_to_tree(self._reward_state),
            "generator": self._generator.bit_generator.state,
            "latest": list(self._latest),
            "step": self.observed,
        }

    def load_state_dict(self, tree: dict[str, Any]) -> None:
        if len(tree["latest"]) != len(self._latest):
            raise OptionError(
                f"The state should be of {len(self._latest)} tasks. Found one of "
                f"{len(tree['latest'])}. Give the tasks the state was taken with."
            )
        self.state = state_from_tree(tree["policy"], like=self.state)
        self._reward_state = state_from_tree(tree["reward"], like=self._reward_state)
        self._generator.bit_generator.state = tree["generator"]
        self._latest = list(tree["latest"])
        self.observed = int(tree["step"])
        self._clock = time.perf_counter()
