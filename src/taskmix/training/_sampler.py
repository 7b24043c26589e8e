"""Policies in other people's loops: a batch sampler for PyTorch and a callback for Hugging Face.

Both log every choice with its probability in our record format, so that logs for `taskmix improve`
can be collected from a loop we do not own.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler

from taskmix.errors import OptionError, RunError
from taskmix.extras import load
from taskmix.numerics import state_from_tree, state_to_tree
from taskmix.policies import AnyPolicy, AnyReward, Choice, Outcome
from taskmix.records import RecordWriter
from taskmix.training._streams import Stream


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A batch that nothing is known of yet, and where everything was before it was drawn."""

    choice: Choice
    probabilities: NDArray[np.float64]  # [task]
    examples: int
    generator: Any  # the random state
    position: tuple[int, int]  # of the task's stream


class PolicyBatchSampler(Sampler[list[int]]):
    """Batches of one task each, the task drawn by a policy.

    The data set is the tasks' data sets one after another (`ConcatDataset`), `sizes` their lengths.
    `steps` is the whole budget: iterating again goes on where the last iteration stopped, and a task
    that is used up starts over in a new order.

    Tell it each batch's loss with `observe`, in the order the batches came. A `DataLoader` with
    workers draws a few batches ahead, so a policy that learns then learns a few steps late. A loss
    that is not finite is logged, has no reward and teaches nothing.

    >>> from taskmix.policies import Fixed
    >>> options = {"batch_size": 2, "steps": 3, "generator": np.random.default_rng(0)}
    >>> sampler = PolicyBatchSampler([4, 100], policy=Fixed((0.5, 0.5)), **options)
    >>> for rows in sampler:
    ...     choice = sampler.observe(loss=0.7)
    >>> choice.task == int(min(rows) >= 4), len(sampler)
    (True, 0)
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        policy: AnyPolicy,
        batch_size: int,
        steps: int,
        generator: np.random.Generator,
        reward: AnyReward | None = None,
        record: RecordWriter | None = None,  # started, with the tasks in the order of `sizes`
    ) -> None:
        if steps < 1 or batch_size < 1 or not len(sizes) or min(sizes) < 1:
            raise OptionError(
                "`steps`, `batch_size` and every size should be 1 or more. Found "
                f"{steps}, {batch_size} and {list(sizes)[:10]}. Leave empty tasks out."
            )
        if reward is not None and reward.needs_loss_after:
            raise OptionError(
                f"The reward should need no loss after the step, which only our own loop measures. "
                f"Found {type(reward).__name__}. `HardProgress` needs none."
            )
        self._policy, self._reward, self._record = policy, reward, record
        self._generator, self._steps = generator, steps
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._begins = np.concatenate([[0], np.cumsum(self._sizes)])
        self._policy_state = policy.init(self._sizes)
        self._reward_state = reward.init(len(sizes)) if reward is not None else None
        self._seed = int(generator.integers(2**62))
        self._batch_size = batch_size
        self._streams = self._make_streams()
        self._latest: list[float | None] = [None] * len(sizes)
        self._pending: deque[_Drawn] = deque()
        self._drawn = 0
        self._observed = 0
        self._clock = time.perf_counter()

    def __len__(self) -> int:
        return self._steps - self._drawn

    def __iter__(self) -> Iterator[list[int]]:
        self._draw_again(self._position())  # what an iteration left behind was never trained on
        while self._drawn < self._steps:
            before = self._generator.bit_generator.state
            probabilities = self._policy.probabilities(self._policy_state)
            choice = self._policy.select(self._policy_state, self._generator)
            stream = self._streams[choice.task]
            position = stream.position
            rows = stream.take() + int(self._begins[choice.task])
            self._pending.append(_Drawn(choice, probabilities, len(rows), before, position))
            self._drawn += 1
            yield rows.tolist()

    def observe(self, loss: float) -> Choice:
        """What became of the oldest batch not yet spoken of; its choice is given back."""
        if not self._pending:
            raise RunError(
                "A loss should follow a batch. Found one more loss than batches drawn. "
                "Call `observe` once for each batch."
            )
        drawn = self._pending.popleft()
        choice, previous = drawn.choice, self._latest[drawn.choice.task]
        outcome = Outcome(choice, loss, previous, cost=float(drawn.examples))
        reward = None
        if math.isfinite(loss):
            if self._reward is not None:
                reward, self._reward_state = self._reward.observe(
                    self._reward_state, outcome, self._generator
                )
            outcome = Outcome(choice, loss, previous, cost=outcome.cost, reward=reward)
            self._latest[choice.task] = loss
        self._policy_state = self._policy.update(self._policy_state, outcome)
        self._observed += 1
        now = time.perf_counter()
        if self._record is not None:
            self._record.add_step(
                self._observed,
                choice.task,
                probability=choice.probability,
                probabilities=drawn.probabilities,
                loss=loss,
                reward=reward,
                weight=None,
                seconds=now - self._clock,
                examples=drawn.examples,
            )
        self._clock = now
        return choice

    def state_dict(self) -> dict[str, Any]:
        """Where it is, as plain values; batches drawn and not spoken of are drawn again."""
        generator, streams = self._position()
        return {
            "policy": state_to_tree(self._policy_state),
            "reward": state_to_tree(self._reward_state),
            "generator": generator,
            "seed": self._seed,
            "streams": [list(position) for position in streams],
            "latest": list(self._latest),
            "step": self._observed,
        }

    def load_state_dict(self, tree: dict[str, Any]) -> None:
        """Goes on from there."""
        if len(tree["streams"]) != len(self._sizes):
            raise OptionError(
                f"The state should be of a sampler of {len(self._sizes)} tasks. Found one of "
                f"{len(tree['streams'])}. Give the tasks the state was taken with."
            )
        self._policy_state = state_from_tree(tree["policy"], like=self._policy_state)
        self._reward_state = state_from_tree(tree["reward"], like=self._reward_state)
        self._seed = int(tree["seed"])
        self._streams = self._make_streams()
        self._latest = list(tree["latest"])
        self._observed = int(tree["step"])
        self._draw_again((tree["generator"], [(p[0], p[1]) for p in tree["streams"]]))
        self._clock = time.perf_counter()

    def _position(self) -> tuple[Any, list[tuple[int, int]]]:
        """The random state and the streams' places before the first batch not yet spoken of."""
        generator = self._generator.bit_generator.state
        positions = [stream.position for stream in self._streams]
        for drawn in reversed(self._pending):
            generator, positions[drawn.choice.task] = drawn.generator, drawn.position
        return generator, positions

    def _draw_again(self, position: tuple[Any, list[tuple[int, int]]]) -> None:
        generator, positions = position
        self._generator.bit_generator.state = generator
        for stream, place in zip(self._streams, positions, strict=True):
            if stream.position != place:
                stream.move_to(place)
        self._pending.clear()
        self._drawn = self._observed

    def _make_streams(self) -> list[Stream]:
        cpu = torch.device("cpu")
        return [
            Stream(
                torch.arange(int(size)), self._batch_size, seed=self._seed, number=place, device=cpu
            )
            for place, size in enumerate(self._sizes)
        ]


def trainer_callback(sampler: PolicyBatchSampler) -> Any:
    """A callback for the Hugging Face `Trainer` that tells the sampler each batch's loss.

    Give the trainer a data loader with `batch_sampler=sampler` (override `get_train_dataloader`) and
    this among its `callbacks`. The loss is read off what the model returns.

    >>> from taskmix.policies import Uniform
    >>> options = {"batch_size": 2, "steps": 3, "generator": np.random.default_rng(0)}
    >>> sampler = PolicyBatchSampler([4, 100], policy=Uniform(), **options)
    >>> callback = trainer_callback(sampler)  # doctest: +SKIP
    """
    transformers = load("transformers", purpose="A Trainer callback")

    class Callback(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self._losses: list[torch.Tensor] = []
            self._handle: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._handle = kwargs["model"].register_forward_hook(self._see)

        def _see(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
            loss = output["loss"] if isinstance(output, dict) else getattr(output, "loss", None)
            if module.training and loss is not None:
                self._losses.append(loss.detach())

        def _tell(self) -> None:
            for loss in self._losses:
                sampler.observe(float(loss))
            self._losses.clear()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._tell()

        def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._tell()

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._handle.remove()

    return Callback()
