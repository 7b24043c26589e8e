"""The number of a draw travels with the rows that it brought, through any loader to the loss.

A batch sampler gives row numbers to a loader that may read ahead, leave out batches, cut them up, or
give every second one to another process. What order the batches arrive in says nothing then, so every
row number carries the draw it belongs to (`DrawnRow`), a data set hands it on with the row
(`DrawnRows`), and a collate function puts it into the batch (`DrawnCollate`).

Every draw of a mixed stream is logged in Parquet files: its number, its task and how likely it was. Each
reader (a worker of a process) writes files of its own, of `PART` draws each. The last file is
written again whole as it grows, so a run that goes on from a state writes over what came after it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, Sampler, default_collate

from taskmix.errors import InputError, OptionError
from taskmix.files import check_plain, delete, list_folder, make_folder, replacing
from taskmix.policies import Choice

KEY = "draw"  # of a batch that is a dictionary


class DrawnRow(int):
    """A row number that knows the draw it belongs to; everything else takes it for a number.

    >>> row = DrawnRow.of(7, draw=3)
    >>> row == 7, row.draw
    (True, 3)
    """

    draw: int

    @classmethod
    def of(cls, row: int, *, draw: int) -> DrawnRow:
        made = cls(row)
        made.draw = draw
        return made


@dataclass(frozen=True, slots=True)
class Draw:
    """A batch that was drawn, and how: enough to hand it out again and to learn from its loss."""

    number: int  # from 1
    task: int
    probabilities: NDArray[np.float64]  # [task]
    probability: float
    rows: NDArray[np.int64]  # [row], of all tasks' rows one after another

    @property
    def choice(self) -> Choice:
        return Choice(self.task, self.probability)

    def numbered_rows(self) -> list[int]:
        return [DrawnRow.of(row, draw=self.number) for row in self.rows.tolist()]


class DrawnRows(Dataset[tuple[Any, int]]):
    """A data set whose items are pairs of a row and the number of its draw.

    >>> DrawnRows(["a", "b"])[DrawnRow.of(1, draw=5)]
    ('b', 5)
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows  # anything with `len` and numbered items
        # Data sets of Hugging Face fetch all rows of a batch at once.
        self._many = getattr(rows, "__getitems__", None)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.rows[int(index)], _draw_of(index)

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, int]]:
        numbers = [int(index) for index in indices]
        rows = self._many(numbers) if self._many else [self.rows[number] for number in numbers]
        return [(row, _draw_of(index)) for row, index in zip(rows, indices, strict=True)]


class DrawnCollate:
    """Makes a batch of what `DrawnRows` gives, with the draw of every row in it.

    A batch that is a dictionary gets the key `draw`, [row]; any other becomes `(batch, draw)`.

    >>> batch = DrawnCollate()([({"values": 1.5}, 3), ({"values": 2.5}, 3)])
    >>> batch["draw"].tolist()
    [3, 3]
    """

    def __init__(self, collate: Callable[[list[Any]], Any] = default_collate) -> None:
        self._collate = collate

    def __call__(self, items: Sequence[tuple[Any, int]]) -> Any:
        batch = self._collate([row for row, _ in items])
        draws = torch.tensor([draw for _, draw in items], dtype=torch.int64)
        if not isinstance(batch, MutableMapping):
            return batch, draws
        if KEY in batch:
            raise own_key_error("batch")
        batch[KEY] = draws
        return batch


class Shard(Sampler[list[int]]):
    """One process's batches; each round is drawn whole, so that all processes have drawn the same."""

    def __init__(self, sampler: Any, process: int, count: int) -> None:
        if not 0 <= process < count:
            raise OptionError(
                f"`process` should be from 0 to `count` - 1. Found {process} of {count}."
            )
        self._sampler, self._process, self._count = sampler, process, count

    def __len__(self) -> int:
        return len(self._sampler) // self._count

    def __iter__(self) -> Iterator[list[int]]:
        """What is left after the last whole round stays pending: it would be nobody's in the others."""
        waiting: list[list[int]] = []
        for rows in self._sampler:
            waiting.append(rows)
            if len(waiting) == self._count:
                yield waiting[self._process]
                waiting = []


def own_key_error(what: str) -> InputError:
    return InputError(
        f"A {what} should have no key `{KEY}` of its own: the number of its draw goes there. Rename "
        "that column."
    )


def draw_numbers(draw: Any) -> list[int]:
    """The draw of every row, from a tensor, an array, a list or one number."""
    if isinstance(draw, torch.Tensor):
        draw = draw.detach().cpu().numpy()
    return [int(number) for number in np.atleast_1d(np.asarray(draw)).ravel()]


def _draw_of(index: int) -> int:
    if not isinstance(index, DrawnRow):
        raise InputError(
            "The rows should be asked for by a `PolicyBatchSampler`, whose row numbers know their "
            f"draw. Found {type(index).__name__} {index}. Give the loader `batch_sampler=sampler`."
        )
    return index.draw


PART = 65_536
SECONDS = 10.0  # after which what was drawn is written, for a worker that is killed
SCHEMA = pa.schema([("number", pa.int64()), ("task", pa.string()), ("probability", pa.float64())])
NAME = re.compile(r"draws-epoch(\d{4,})-reader(\d{4,})-part(\d{6,})\.parquet")


class DrawLog:
    """The log of one reader in one epoch, which goes on after its first `begin` draws."""

    def __init__(
        self, folder: Path, reader: int, epoch: int, tasks: Sequence[str], *, begin: int
    ) -> None:
        self._folder, self._tasks = folder, list(tasks)
        self._stem = f"draws-epoch{epoch:04}-reader{reader:04}-part"
        self._written = time.monotonic()
        make_folder(folder)
        self._part, kept = divmod(begin, PART)
        self._numbers: list[int] = []
        self._drawn: list[str] = []
        self._probabilities: list[float] = []
        if kept:
            self._read_back(kept)
        for name in list_folder(folder):
            found = NAME.fullmatch(name)
            later = found is not None and int(found[3]) > self._part
            if later and name.startswith(self._stem):
                delete(folder / name, is_ours=is_draw_log)

    def add(self, number: int, task: int, probability: float) -> None:
        self._numbers.append(number)
        self._drawn.append(self._tasks[task])
        self._probabilities.append(probability)
        if not len(self._numbers) % 256 and time.monotonic() - self._written > SECONDS:
            self.flush()
        if len(self._numbers) == PART:
            self.flush()
            self._part += 1
            self._numbers, self._drawn, self._probabilities = [], [], []

    def flush(self) -> None:
        """Writes what there is of the part."""
        if not self._numbers:
            return
        table = pa.table([self._numbers, self._drawn, self._probabilities], schema=SCHEMA)
        with replacing(self._path(), sync=False) as sink:
            pq.write_table(table, pa.PythonFile(sink, mode="w"))
        self._written = time.monotonic()

    def _path(self) -> Path:
        return self._folder / f"{self._stem}{self._part:06}.parquet"

    def _read_back(self, kept: int) -> None:
        try:
            table = _read(self._path())
        except FileNotFoundError:
            table = SCHEMA.empty_table()
        if len(table) < kept:
            raise InputError(
                f"The log `{self._path()}` should have the first {kept} draws of its part. Found "
                f"{len(table)}. Log into another folder, or bring back the one the state goes with."
            )
        table = table.slice(0, kept)
        self._numbers, self._drawn, self._probabilities = (
            table[name].to_pylist() for name in SCHEMA.names
        )


def is_draw_log(path: Path) -> bool:
    """Whether a file is one of these, by its name."""
    return NAME.fullmatch(path.name) is not None


def read_draws(folder: str | Path) -> pa.Table:
    """All draws that a `MixedStream` logged: `epoch`, `number`, `task`, `probability`, in their order.

    >>> mixed = MixedStream({"a": range(9), "b": range(9)}, shares=[0.5, 0.5], seed=0, log="log")
    >>> from itertools import islice
    >>> rows = list(islice(mixed, 4))
    >>> read_draws("log").column("probability").to_pylist()
    [0.5, 0.5, 0.5, 0.5]
    """
    folder = Path(folder)
    tables = []
    for name in list_folder(folder):
        found = NAME.fullmatch(name)
        if found is not None:
            table = _read(folder / name)
            epochs = pa.array([int(found[1])] * len(table), pa.int64())
            tables.append(table.add_column(0, "epoch", epochs))
    if not tables:
        raise InputError(
            f"`{folder}` should have the draws of a mixed stream. Found none. Give the folder that was "
            "its `log`."
        )
    return pa.concat_tables(tables).sort_by([("epoch", "ascending"), ("number", "ascending")])


def _read(path: Path) -> pa.Table:
    check_plain(path)
    try:
        return pq.read_table(path, schema=SCHEMA)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"The log `{path}` should be a Parquet file of draws. Found: {str(error)[:200]}."
        ) from error
