"""Streams mixed into one, by shares that may change while they are read.

Every reader (a worker of a process) draws for itself, by random numbers made from (seed, epoch, reader,
count of draws): its place is a few counters, and readers never draw alike. What it draws by is in memory
that the workers share with their process (`SharedShares`), so that a change is seen at the next draw; a
schedule needs none, since it follows from the count.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError, RunError
from taskmix.policies import AnyPolicy, Capped, Scheduled, SizeProportional, Tempered
from taskmix.training._source import SharedShares, Source, StreamPlace, check_stream
from taskmix.training._streams import mixed_seed

WhenExhausted = Literal["repeat", "stop", "leave out"]
BLOCK = 4096  # random numbers that are drawn at once


@dataclass(slots=True)
class Cursor:
    """Where a reader is: counters of its own draws, and of the rows of each stream."""

    reader: int
    readers: int
    epoch: int
    number: int = 0  # draws of this reader
    passes: list[int] = field(default_factory=list)  # [stream]
    taken: list[int] = field(default_factory=list)  # [stream], in the running pass
    left_out: list[bool] = field(default_factory=list)  # [stream]
    inner: list[Any] = field(default_factory=list)  # [stream], only in a state
    ended: bool = False
    # Whether `taken` counts the rows of all passes, as one does who has only seen them arrive.
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """A row, or a batch of rows of one stream, and how it was drawn."""

    rows: Any
    number: int  # over all readers
    task: int
    version: int  # of the shares
    bits: int  # of the probability, a float64


class Mixer:
    """Reads streams by shares; one reader's part of them."""

    def __init__(
        self,
        streams: Mapping[str, Any],
        shares: SharedShares,
        schedule: tuple[Scheduled, Any] | None,  # with its state
        cursor: Cursor,
        *,
        seed: int,
        when_exhausted: WhenExhausted,
        sharing: Sequence[bool],  # [stream], whether each shares itself out over readers
        batch_size: int | None,
    ) -> None:
        self._shares, self._schedule, self._seed = shares, schedule, seed
        self._when_exhausted, self._batch_size = when_exhausted, batch_size
        self.cursor = cursor
        self._sources = [
            Source(
                name,
                stream,
                reader=cursor.reader,
                readers=cursor.readers,
                epoch=cursor.epoch,
                shares_itself=alone,
            )
            for (name, stream), alone in zip(streams.items(), sharing, strict=True)
        ]
        count = len(self._sources)
        cursor.passes = cursor.passes or [0] * count
        cursor.taken = cursor.taken or [0] * count
        cursor.left_out = cursor.left_out or [False] * count
        inner = cursor.inner or [None] * count
        self._places = [
            StreamPlace(*place) for place in zip(cursor.passes, cursor.taken, inner, strict=True)
        ]
        self._iterators: list[Iterator[Any] | None] = [None] * count  # opened when first drawn
        if cursor.counted:
            cursor.counted = False
            for task, source in enumerate(self._sources):
                place, self._iterators[task] = source.forward(cursor.taken[task])
                cursor.passes[task], cursor.taken[task] = place.passes, place.taken

    def state(self) -> dict[str, Any]:
        """The counters, with each stream's own state where it has one."""
        cursor = self.cursor
        inner = [
            source.place(passes, taken).inner if iterator is not None else place.inner
            for source, iterator, place, passes, taken in zip(
                self._sources,
                self._iterators,
                self._places,
                cursor.passes,
                cursor.taken,
                strict=True,
            )
        ]
        copied = asdict(replace(cursor, inner=[]))
        return {**copied, "inner": inner}

    def __iter__(self) -> Iterator[Drawn]:
        cursor, iterators, taken = self.cursor, self._iterators, self.cursor.taken
        counters, readers = self._shares.counters, cursor.readers
        number, size = cursor.number, self._batch_size
        version, until = -1, -1  # nothing is known yet
        block: list[float] = []
        while not cursor.ended:
            if counters[0] != version or number >= until:
                version, until, cumulative, bits = self._look(number)
            if not block or not number % BLOCK:
                block = self._uniform(number // BLOCK)
            task = bisect_right(cumulative, block[number % BLOCK])
            iterator = iterators[task]
            if iterator is None:
                iterator = iterators[task] = self._sources[task].begin(self._places[task])
            try:
                rows = next(iterator) if size is None else self._batch(task, size)
            except StopIteration:
                cursor.ended = not self._goes_on_after(task)
                version = -1
                continue
            if size is None:
                taken[task] += 1
            cursor.number = number + 1
            yield Drawn(rows, number * readers + cursor.reader, task, version, bits[task])
            number += 1

    def _batch(self, task: int, size: int) -> list[Any]:
        """Rows of one stream; fewer where it ends and is not repeated."""
        rows: list[Any] = []
        while len(rows) < size:
            iterator = self._iterators[task]
            assert iterator is not None
            try:
                rows.append(next(iterator))
            except StopIteration:
                if self._when_exhausted != "repeat" and rows:
                    return rows
                if self._when_exhausted != "repeat":
                    raise
                self._goes_on_after(task)
            else:
                self.cursor.taken[task] += 1
        return rows

    def _goes_on_after(self, task: int) -> bool:
        """What happens when a pass over a stream has ended; whether there is more to draw."""
        cursor, source = self.cursor, self._sources[task]
        if self._when_exhausted == "stop":
            return False
        if self._when_exhausted == "leave out":
            cursor.left_out[task] = True
            return not all(cursor.left_out)
        if not cursor.taken[task] and not source.read_alone():
            raise RunError(
                f"The stream `{source.name}` should have rows. Found none in pass "
                f"{cursor.passes[task] + 1}. Leave it out, or give a function that opens it anew."
            )
        # Of a stream with fewer rows than readers some get none, and read all of it instead.
        cursor.passes[task] += 1
        cursor.taken[task] = 0
        self._iterators[task] = source.begin(StreamPlace(cursor.passes[task]))
        return True

    def _look(self, number: int) -> tuple[int, int, list[float], list[int]]:
        """The version of the shares, the draw they hold until, their sums and the probabilities."""
        version, shares = self._shares.get()
        until = 1 << 62
        if self._schedule is not None:
            shares, until = self._scheduled(number)
        left_out = self.cursor.left_out
        if any(left_out):
            shares = np.where(left_out, 0.0, shares)
            if shares.sum() <= 0:  # those that are left had no share: they get the same
                shares = 1.0 - np.array(left_out, dtype=np.float64)
            shares = shares / shares.sum()
        cumulative = (shares.cumsum() / shares.sum()).tolist()
        last = int(np.flatnonzero(shares)[-1])
        for place in range(last, len(cumulative)):
            cumulative[place] = 1.0  # above every random number: a rounded sum may miss it
        return version, until, cumulative, [float_bits(share) for share in shares.tolist()]

    def shares_now(self) -> NDArray[np.float64]:
        """What the next row is drawn by, before anything is left out."""
        if self._schedule is None:
            return self._shares.get()[1]
        return self._scheduled(self.cursor.number)[0]

    def _scheduled(self, number: int) -> tuple[NDArray[np.float64], int]:
        """The shares of the schedule, whose step is the count of draws of all readers."""
        assert self._schedule is not None
        (policy, state), readers = self._schedule, self.cursor.readers
        step = number * readers + self.cursor.reader
        shares = policy.probabilities(replace(state, step=step))
        if policy.interpolate:
            return shares, number + 1
        later = [start for start, _ in policy.stages if start > step]
        return shares, -((self.cursor.reader - later[0]) // readers) if later else 1 << 62

    def _uniform(self, block: int) -> list[float]:
        seed = mixed_seed(self._seed, self.cursor.epoch, self.cursor.reader, block)
        return list(np.random.default_rng(seed).random(BLOCK).tolist())


def float_bits(value: float) -> int:
    """The 64 bits of a float as a whole number, so that it can be among whole numbers."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def float_of_bits(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


NEEDS_SIZES = (Capped, SizeProportional, Tempered)


def as_losses(losses: Any, table: NDArray[np.int64]) -> NDArray[np.float64]:
    if isinstance(losses, torch.Tensor):
        losses = losses.detach().float().cpu().numpy()
    values = np.asarray(losses, dtype=np.float64)
    drawn = len(np.unique(table[:, 0]))
    if values.ndim == 0 and drawn == 1:
        return np.full(len(table), float(values))
    if values.shape != (len(table),):
        raise RunError(
            f"There should be one loss for each of the {len(table)} rows, or one for rows of one draw. "
            f"Found the shape {values.shape} for {drawn} draws. Compute the loss with "
            "`reduction='none'`, or draw whole batches with `batch_size`."
        )
    return values


def sizes_of(
    streams: Mapping[str, Any], policy: AnyPolicy, sizes: Sequence[int] | None
) -> NDArray[np.int64]:
    """Rows of each stream; a policy that does not go by them is told of one each."""
    if sizes is None:
        known = [len(each) if hasattr(each, "__len__") else None for each in streams.values()]
        if None in known and isinstance(policy, NEEDS_SIZES):
            raise OptionError(
                f"`{type(policy).__name__}` goes by the rows of each stream. Found streams whose length "
                "is not known. Give `sizes`, one number for each stream."
            )
        sizes = [1 if each is None else each for each in known]
    if len(sizes) != len(streams):
        raise OptionError(
            f"`sizes` should have one number for each of the {len(streams)} streams. Found {len(sizes)}."
        )
    return np.asarray(sizes, dtype=np.int64)


def check_mixture(
    streams: Mapping[str, Any],
    sharded: Collection[str],
    when_exhausted: str,
    batch_size: int | None,
    processes: tuple[int, int] | None,
) -> None:
    if not streams:
        raise InputError("There should be at least one stream. Found none.")
    for name, stream in streams.items():
        check_stream(name, stream)
    if set(sharded) - set(streams):
        raise OptionError(
            f"`sharded` should name some of the streams {list(streams)}. Found {sorted(sharded)}."
        )
    if when_exhausted not in ("repeat", "stop", "leave out"):
        raise OptionError(
            f"`when_exhausted` should be 'repeat', 'stop' or 'leave out'. Found {when_exhausted!r}."
        )
    if processes is not None and not 0 <= processes[0] < processes[1]:
        raise OptionError(
            "`processes` should be this process, from 0, and how many there are. Found "
            f"{processes}."
        )
    if batch_size is not None and batch_size < 1:
        raise OptionError(f"`batch_size` should be 1 or more, or None. Found {batch_size}.")
