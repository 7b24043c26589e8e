"""Policies in other people's loops: a batch sampler for PyTorch, accelerate and their like.

Every choice is logged with its probability in our record format, so that logs for `taskmix improve` can
be collected from a loop we do not own.

Draws are numbered from 1, and the number travels with the batch (`_draws.py`). A draw is *pending* from
when it is handed out until its loss is observed. Nothing else is kept in order: a loader may read ahead,
skip, or share batches out. Pending draws are part of the state, and a new iteration hands them out
first, the same rows under the same number; an observed one never comes again.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, Sampler, default_collate

from taskmix.errors import InputError, OptionError, RunError
from taskmix.numerics import state_to_tree
from taskmix.policies import AnyPolicy, AnyReward, Choice
from taskmix.records import RecordWriter
from taskmix.training._draws import Draw, DrawnCollate, DrawnRows, Shard, draw_numbers
from taskmix.training._learner import Gathering, Learner, ReportedLoss, combined, process_count
from taskmix.training._streams import Stream


class PolicyBatchSampler(Sampler[list[int]]):
    """Batches of one task each, the task drawn by a policy.

    The data set is the tasks' data sets one after another, `sizes` their lengths. `steps` is the whole
    budget: iterating again goes on where the last iteration stopped, and a task that is used up starts
    over in a new order. `loader` makes a `DataLoader` whose batches know their draw; tell the sampler
    each batch's loss and draw with `observe`. A loader that reads ahead makes a policy that learns learn
    a few steps late. A loss that is not finite is logged, has no reward and teaches nothing.

    On several processes each has such a sampler, with the same seed. All make the same draws, accelerate
    (or `loader(..., processes=(rank, count))`) gives each process some of them, and `observe` shares the
    losses: every process has to call it, equally often.

    >>> from taskmix.policies import Fixed
    >>> options = {"batch_size": 2, "steps": 3, "generator": np.random.default_rng(0)}
    >>> sampler = PolicyBatchSampler([4, 100], policy=Fixed((0.5, 0.5)), **options)
    >>> for batch, draw in sampler.loader([range(4), range(100)]):
    ...     choice = sampler.observe(0.7, draw)
    >>> draw.tolist(), len(sampler)
    ([3, 3], 0)
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
        self._generator = generator
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._begins = np.concatenate([[0], np.cumsum(self._sizes)])
        self._seed = int(generator.integers(2**62))
        self._learner = Learner(policy, self._sizes, seed=self._seed, reward=reward, record=record)
        self._full_batch = batch_size
        self._streams = self._make_streams()
        self._pending: dict[int, Draw] = {}  # by number
        self._out: set[int] = set()  # those of them that the running iteration has handed out
        self._drawn = 0
        self._checksum = zlib.crc32(struct.pack("<q", self._seed) + self._sizes.tobytes())
        self._resumed_at: int | None = (
            None  # the draw that has to come first after a state was loaded
        )
        self._gathering = Gathering()
        self.steps = steps
        # Read by accelerate, which takes None for batches of different sizes.
        self.batch_size = batch_size if min(sizes) >= batch_size else None
        # It would fill up the last round of several processes with batches that were trained before.
        self.drop_last = True

    @property
    def sizes(self) -> list[int]:
        """The rows of each task."""
        return [int(size) for size in self._sizes]

    def __len__(self) -> int:
        """How many batches a new iteration has: those not drawn yet, and the pending ones."""
        return len(self._pending) + self.steps - self._drawn

    def __iter__(self) -> Iterator[list[int]]:
        self._out.clear()
        for draw in [self._pending[number] for number in sorted(self._pending)]:
            self._out.add(draw.number)
            yield draw.numbered_rows()
        while self._drawn < self.steps:
            draw = self._draw()
            self._out.add(draw.number)
            yield draw.numbered_rows()

    def loader(
        self,
        tasks: Any,  # a data set for each task in the order of `sizes`, or one with all rows
        *,
        collate_fn: Callable[[list[Any]], Any] = default_collate,
        processes: tuple[int, int]
        | None = None,  # this one and how many; not where accelerate shares
        **options: Any,  # of the `DataLoader`: num_workers, pin_memory and the like
    ) -> DataLoader[Any]:
        """A loader of these batches; each has its draw, as the key `draw` or as `(batch, draw)`."""
        if isinstance(tasks, list | tuple) and len(tasks) == len(self._sizes):
            tasks = ConcatDataset(tasks)
        self.check_rows(tasks)
        return DataLoader(
            DrawnRows(tasks),
            batch_sampler=self if processes is None else Shard(self, *processes),
            collate_fn=DrawnCollate(collate_fn),
            **options,
        )

    def check_rows(self, rows: Any) -> None:
        """Refuses a data set of another length than all tasks have together."""
        total = int(self._begins[-1])
        if not hasattr(rows, "__len__") or len(rows) != total:
            found = len(rows) if hasattr(rows, "__len__") else "no length"
            raise InputError(
                f"The data set should have the rows of all tasks one after another, {total} in all. "
                f"Found {found}. Give a data set for each task in the order of `sizes`, or their "
                "`ConcatDataset`."
            )

    def observe(self, loss: float | Tensor, draw: Any = None) -> Choice:
        """Learns from the mean loss of the batch that was drawn as `draw` (of its rows, or a number).

        `draw` may be left out where only one batch is under way, as in a loop without workers. Gives
        back the choice.
        """
        number, rows = self._number_of(draw)
        value = float(loss.detach()) if isinstance(loss, Tensor) else float(loss)
        everyone = self._gathering.everyone(
            [(float(number), value, float(rows))], checksum=self._checksum
        )
        told = combined([ReportedLoss(int(row[0]), row[1], int(row[2])) for row in everyone])
        self._refuse_a_gap(told[0].draw)
        for each in told:
            self._refuse_unknown(each.draw)
        chosen = self._pending[number].choice
        for each in told:
            self._out.discard(each.draw)
            draw = self._pending.pop(each.draw)
            self._learner.learn(draw.choice, draw.probabilities, each.loss, examples=len(draw.rows))
        return chosen

    def state_dict(self) -> dict[str, Any]:
        """Where it is, as plain values; `records.save_state` writes them."""
        return {
            "learner": self._learner.state_dict(),
            "generator": self._generator.bit_generator.state,
            "seed": self._seed,
            "checksum": self._checksum,
            "streams": [list(stream.position) for stream in self._streams],
            "pending": [state_to_tree(self._pending[number]) for number in sorted(self._pending)],
            "drawn": self._drawn,
        }

    def load_state_dict(self, tree: dict[str, Any]) -> None:
        """Goes on from there: pending draws first, then new ones. Do not skip batches as well."""
        self._learner.load_state_dict(tree["learner"])
        self._generator.bit_generator.state = tree["generator"]
        self._seed, self._checksum = int(tree["seed"]), int(tree["checksum"])
        self._streams = self._make_streams()
        for stream, (number, place) in zip(self._streams, tree["streams"], strict=True):
            stream.move_to((number, place))
        draws = [Draw(**each) for each in tree["pending"]]
        self._pending = {draw.number: draw for draw in draws}
        self._drawn = int(tree["drawn"])
        self._out.clear()
        self._resumed_at = min(self._pending, default=self._drawn + 1)

    def _draw(self) -> Draw:
        learner = self._learner
        probabilities = learner.probabilities
        choice = learner.policy.select(learner.state, self._generator)
        rows = self._streams[choice.task].take() + int(self._begins[choice.task])
        self._drawn += 1
        draw = Draw(
            self._drawn, choice.task, np.array(probabilities), choice.probability, rows.numpy()
        )
        self._pending[draw.number] = draw
        packed = struct.pack("<qqd", draw.number, draw.task, draw.probability)
        self._checksum = zlib.crc32(packed, self._checksum)
        return draw

    def _number_of(self, draw: Any) -> tuple[int, int]:
        """The number of a draw, and how many rows it is given for."""
        if draw is None:
            if len(self._out) != 1 or process_count() > 1:
                raise RunError(
                    "A loss should say which draw it is of. Found no `draw`, and "
                    f"{len(self._out)} batches without a loss, in {process_count()} "
                    "processes. Make the loader with `sampler.loader(...)` and call "
                    "`observe(loss, draw)` with what the batch has."
                )
            (number,) = self._out
            return number, len(self._pending[number].rows)
        numbers = draw_numbers(draw)
        if len(set(numbers)) != 1:
            raise RunError(
                f"A loss should be that of one draw. Found rows of {len(set(numbers))} draws in one "
                "batch. Tell each draw's mean loss by itself, and let no loader mix the batches."
            )
        return numbers[0], len(numbers)

    def _refuse_unknown(self, number: int) -> None:
        if number in self._pending:
            return
        found = "one that was observed before" if 1 <= number <= self._drawn else "one never drawn"
        raise RunError(
            f"A loss should be that of a batch this sampler handed out. Found draw {number}, {found}. "
            "Call `observe` once for each batch; where one process reads for all "
            "(`dispatch_batches=True`), let each read for itself."
        )

    def _refuse_a_gap(self, first: int) -> None:
        if self._resumed_at not in (None, first):
            raise RunError(
                f"After `load_state_dict` the first batch should be that of draw {self._resumed_at}. "
                f"Found draw {first}. The sampler continues by itself: leave `skip_first_batches` out, "
                "or set `ignore_data_skip=True`."
            )
        self._resumed_at = None

    def _make_streams(self) -> list[Stream]:
        cpu = torch.device("cpu")
        return [
            Stream(
                torch.arange(int(size)), self._full_batch, seed=self._seed, number=place, device=cpu
            )
            for place, size in enumerate(self._sizes)
        ]
