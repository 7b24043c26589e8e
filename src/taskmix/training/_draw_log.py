"""Every draw of a mixed stream in Parquet files: its number, its task and how likely it was.

Each reader (a worker of a process) writes files of its own, of `PART` draws each. The last file is
written again whole as it grows, so a run that goes on from a state writes over what came after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from taskmix.errors import InputError
from taskmix.files import check_plain, delete, list_folder, make_folder, replacing

PART = 65_536
SCHEMA = pa.schema([("number", pa.int64()), ("task", pa.string()), ("probability", pa.float64())])
NAME = re.compile(r"draws-epoch(\d{4,})-reader(\d{4,})-part(\d{6,})\.parquet")


class DrawLog:
    """The log of one reader in one epoch, which goes on after its first `begin` draws."""

    def __init__(
        self, folder: Path, reader: int, epoch: int, tasks: Sequence[str], *, begin: int
    ) -> None:
        self._folder, self._tasks = folder, list(tasks)
        self._stem = f"draws-epoch{epoch:04}-reader{reader:04}-part"
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
