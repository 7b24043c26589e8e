"""One of several streams that are mixed, as one reader of several sees it.

A reader is a worker of a process; every row of a pass goes to one of them. Streams of Hugging Face are
split by their own rule (whole shards where the numbers allow, else every n-th row); of others a reader
takes every n-th row. A place in a stream is the pass, the rows taken in it, and the stream's own state
where it has one; without, the rows before are read again and thrown away.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.utils.data
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from taskmix.errors import InputError, RunError, ShapeError
from taskmix.numerics import as_distribution


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Where a reader is in a stream."""

    passes: int = 0  # that were read to their end
    taken: int = 0  # rows of the pass that is being read, by this reader
    inner: Any = None  # the stream's own state after them


class Source:
    """Opens a stream at a place, for reader number `reader` of `readers`."""

    def __init__(
        self,
        name: str,
        stream: Any,  # iterable, with numbered items, or a function that opens one
        *,
        reader: int,
        readers: int,
        epoch: int,
        shares_itself: bool,
    ) -> None:
        self.name, self._stream, self._epoch = name, stream, epoch
        self._reader, self._readers = (0, 1) if shares_itself else (reader, readers)
        self._open: Any = None  # the stream that is being read
        self._opened = StreamPlace()

    def begin(self, place: StreamPlace) -> Iterator[Any]:
        """The rows from there to the end of the pass."""
        self._opened, stream = place, self._stream
        if _is_hub_stream(stream):
            stream = self._split(stream)
        elif callable(stream) and not isinstance(stream, Iterable):
            stream = stream()
        elif place.passes and not _has_numbered_rows(stream) and iter(stream) is stream:
            raise RunError(
                f"The stream `{self.name}` should be readable more than once. Found an iterator that "
                "is used up. Give a function that opens it anew, or `when_exhausted='leave out'`."
            )
        if _has_numbered_rows(stream):
            first = self._reader + place.taken * self._readers
            return (stream[number] for number in range(first, len(stream), self._readers))
        if hasattr(stream, "set_epoch"):
            stream.set_epoch(
                self._epoch + place.passes
            )  # another order in each pass, where it shuffles
        self._open = stream
        step = 1 if _is_hub_stream(stream) else self._readers
        if place.inner is not None:
            stream.load_state_dict(place.inner)
            return _strided(stream, skipped=step - 1, step=step)
        begin = place.taken * step + (self._reader if step > 1 else 0)
        return _strided(stream, skipped=begin, step=step)

    def place(self, passes: int, taken: int) -> StreamPlace:
        """Where it is after so many rows; to be asked while the stream is being read."""
        if (passes, taken) == (self._opened.passes, self._opened.taken):
            return self._opened
        state = getattr(self._open, "state_dict", None)
        resumable = state is not None and hasattr(self._open, "load_state_dict")
        return StreamPlace(passes, taken, state() if state is not None and resumable else None)

    def forward(self, rows: int) -> tuple[StreamPlace, Iterator[Any]]:
        """Where this reader is after `rows` rows of its own, over as many passes as that takes."""
        stream, passes = self._stream, 0
        if _has_numbered_rows(stream):
            own = len(range(self._reader, len(stream), self._readers))
            if not own and self.read_alone():
                own = len(stream)
            passes = max(0, (rows - 1) // own) if own else 0
            place = StreamPlace(passes, rows - passes * own)
            return place, self.begin(place)
        while True:
            iterator = self.begin(StreamPlace(passes))
            skipped = sum(1 for _ in islice(iterator, rows))
            if skipped == rows:
                return StreamPlace(passes, rows), iterator
            if not skipped and not self.read_alone():
                raise RunError(
                    f"The stream `{self.name}` should have the rows that were read before. Found none. "
                    "Give the streams the state was taken with."
                )
            rows -= skipped
            passes += 1

    def read_alone(self) -> bool:
        """Stops sharing the rows out; whether it did before."""
        shared, self._reader, self._readers = self._readers > 1, 0, 1
        return shared

    def _split(self, stream: Any) -> Any:
        if self._readers == 1:
            return copy.copy(stream)  # its state is kept in the object
        from datasets.distributed import split_dataset_by_node

        return split_dataset_by_node(stream, rank=self._reader, world_size=self._readers)


def check_stream(name: str, stream: Any) -> None:
    """Refuses what has no rows to read."""
    known = isinstance(stream, Iterable) or callable(stream) or _has_numbered_rows(stream)
    if not known or isinstance(stream, str | bytes | Mapping):
        raise InputError(
            f"The stream `{name}` should be a data set, an iterable or a function that opens one. "
            f"Found {type(stream).__name__}."
        )


def shares_itself(stream: Any) -> bool:
    """Whether a stream is known to give each worker and process rows of its own."""
    return type(stream).__module__.partition(".")[0] == "webdataset"


def _is_hub_stream(stream: Any) -> bool:
    return type(stream).__module__.startswith("datasets.") and hasattr(stream, "load_state_dict")


def _has_numbered_rows(stream: Any) -> bool:
    named = isinstance(stream, torch.utils.data.IterableDataset | Mapping)
    return not named and hasattr(stream, "__len__") and hasattr(stream, "__getitem__")


def _strided(stream: Iterable[Any], *, skipped: int, step: int) -> Iterator[Any]:
    """Every `step`-th row; those in between are read when the next one is asked for, not before."""
    iterator = iter(stream)
    with _seen_alone(stream):
        first = list(islice(iterator, skipped, skipped + 1))
    yield from first
    if step == 1:
        yield from iterator
    while first:
        first = list(islice(iterator, step - 1, step))
        yield from first


@contextmanager
def _seen_alone(stream: Any) -> Iterator[None]:
    """Streams of Hugging Face look for the worker they are in and would be split a second time."""
    worker = torch.utils.data._utils.worker
    info = worker._worker_info
    if _is_hub_stream(stream):
        worker._worker_info = None
    try:
        yield
    finally:
        worker._worker_info = info


KEPT = 10_000  # versions whose shares are remembered: rows are told of while they are under way


class SharedShares:
    """Shares in memory that workers have in common with the process that made them.

    There are two rows, of which the version says the current one: whoever reads while another writes
    has either the old shares or the new ones, never half of each.
    """

    def __init__(self, shares: ArrayLike) -> None:
        values = _checked(shares, None)
        self._rows = _shared(torch.zeros(2, len(values), dtype=torch.float64))
        self._counters = _shared(torch.zeros(3, dtype=torch.int64))
        self._rows[0] = torch.from_numpy(values)
        self._versions = {0: values}

    def __len__(self) -> int:
        return self._rows.shape[1]

    @property
    def counters(self) -> NDArray[np.int64]:
        """The version, whether a worker has read, how many readers there are; the memory itself."""
        return self._counters.numpy()

    def get(self) -> tuple[int, NDArray[np.float64]]:
        """The version and its shares."""
        while True:
            version = int(self._counters[0])
            shares = self._rows[version % 2].numpy().copy()
            if int(self._counters[0]) - version < 2:
                return version, shares

    def set(self, shares: ArrayLike) -> None:
        """Makes a new version; every worker draws its next row by it."""
        values = _checked(shares, len(self))
        version = int(self._counters[0]) + 1
        self._rows[version % 2] = torch.from_numpy(values)
        self._counters[0] = version
        self._versions[version] = values
        self._versions.pop(version - KEPT, None)

    def of_version(self, version: int) -> NDArray[np.float64] | None:
        """What the shares were, where that is remembered."""
        return self._versions.get(version)


def _shared(tensor: Tensor) -> Tensor:
    return tensor.share_memory_()  # type: ignore[no-untyped-call, no-any-return]


def _checked(shares: ArrayLike, count: int | None) -> NDArray[np.float64]:
    values = as_distribution(shares, name="shares")
    if values.ndim != 1 or (count is not None and len(values) != count):
        raise ShapeError(
            f"`shares` should have one number for each of the {count or ''} streams. Found the shape "
            f"{values.shape}."
        )
    return values
