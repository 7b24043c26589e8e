"""Rows of files that need not fit into memory: the task and the symbols of each, as they are written.

A file is read in several places at once, so that neighbours in a batch come from all parts of it: data
that lie task by task would otherwise make batches of one task each. Places are bytes of plain files and
row groups of Parquet; packed text (`.gz`) can only be read from its beginning.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.files import open_plain

Row = tuple[str, Any]  # the task, and a text or a list of symbols
PLACES = 16  # of a file that are read at once
_TASK = "task"  # the column that names the task, if no other does
_LEAST = 1 << 10  # bytes from one place to the next
_TEXTS = (".txt", ".csv", ".tsv", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """Which columns of a table are meant.

    >>> RowColumns(task="user").sequence
    'sequence'
    """

    sequence: str = "sequence"
    task: str | None = None  # None: `task`, where there is one; or each file is a task


def list_files(path: Path) -> list[Path]:
    """The file, or those of a folder; a sentence where one cannot be streamed."""
    files = [path]
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if not each.name.startswith("."))
    good = [each for each in files if each.is_file() and _kind(each) is not None]
    if not good:
        raise InputError(
            f"`{path}` should be a file, or a folder of files, that end in .txt, .csv, .tsv, .jsonl "
            "(.gz may follow) or .parquet. Found none. Convert it, or fit without a stream."
        )
    return good


def open_places(path: Path, columns: RowColumns, places: int = PLACES) -> list[Iterator[Row]]:
    """Iterators over the rows of a file, each from one place to the next."""
    stem, kind = path.name.split(".")[0], _kind(path)
    if kind == ".parquet":
        return _parquet(path, stem, columns, places)
    if path.suffix == ".gz":
        from taskmix.tasks import text_lines

        lines = text_lines(path)
        return [_rows(lines, _parser(path, kind, lines, stem, columns))]
    with open_plain(path) as file:
        first = file.readline()
    begin = len(first) if kind in (".csv", ".tsv") else 0
    parse = _parser(path, kind, iter([_decoded(path, first, 0)]), stem, columns)
    size = path.stat().st_size
    places = max(1, min(places, size // _LEAST))
    marks = [begin + (size - begin) * place // places for place in range(places + 1)]
    return [
        _rows(_lines(path, low, high, begin), parse) for low, high in pairwise(marks) if low < high
    ]


def _kind(path: Path) -> str | None:
    endings = [each.lower() for each in path.suffixes[-2:]]
    if endings[-1:] == [".gz"]:
        endings = endings[:-1]
    if endings[-1:] == [".parquet"] and path.suffix != ".gz":
        return ".parquet"
    return endings[-1] if endings[-1:] and endings[-1] in _TEXTS else None


def _rows(lines: Iterator[str], parse: Callable[[str], Row]) -> Iterator[Row]:
    for line in lines:
        if line.strip():
            yield parse(line)


def _lines(path: Path, low: int, high: int, begin: int) -> Iterator[str]:
    """The lines that begin in these bytes."""
    with open_plain(path) as file:
        file.seek(low)
        if low > begin:
            file.seek(low - 1)
            file.readline()  # the line that was begun before
        while file.tell() < high:
            line = file.readline()
            if not line:
                return
            yield _decoded(path, line, file.tell() - len(line))


def _decoded(path: Path, line: bytes, begin: int) -> str:
    try:
        return line.decode("utf-8-sig" if begin == 0 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{path}` should be UTF-8 to be streamed. Found other bytes at byte "
            f"{begin + error.start}. Convert it, or fit without a stream."
        ) from None


def _parser(
    path: Path, kind: str | None, lines: Iterator[str], stem: str, columns: RowColumns
) -> Callable[[str], Row]:
    if kind == ".txt":
        return lambda line: (stem, line)
    if kind == ".jsonl":

        def of_object(line: str) -> Row:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(
                    f"Every line of `{path}` should be one JSON object. Found {line[:60]!r}. Correct "
                    "that line or take it out."
                ) from None
            if not isinstance(row, dict) or columns.sequence not in row:
                raise _lacking(path, columns.sequence, row if isinstance(row, dict) else ())
            if columns.task is not None and columns.task not in row:
                raise _lacking_task(path, columns.task, row)
            return str(row.get(columns.task or _TASK, stem)), row[columns.sequence]

        return of_object
    mark = "\t" if kind == ".tsv" else ","
    header = next(csv.reader([next(lines, "")], delimiter=mark), [])
    place = _place(path, header, columns.sequence)
    task = _task_column(path, header, columns)
    owner = None if task is None else header.index(task)

    def of_cells(line: str) -> Row:
        cells = next(csv.reader([line], delimiter=mark))
        if len(cells) != len(header):
            raise InputError(
                f"Rows of `{path}` should have {len(header)} cells, one row a line, to be streamed. "
                f"Found {len(cells)} in {line[:60]!r}. Correct it, or fit without a stream."
            )
        return (stem if owner is None else cells[owner]), cells[place]

    return of_cells


def _parquet(path: Path, stem: str, columns: RowColumns, places: int) -> list[Iterator[Row]]:
    import pyarrow.parquet as pq

    with open_plain(path) as source, pq.ParquetFile(source) as file:
        names, groups = file.schema_arrow.names, file.num_row_groups
    _place(path, names, columns.sequence)
    task = _task_column(path, names, columns)
    wanted = [columns.sequence] if task is None else [columns.sequence, task]

    def rows(which: Sequence[int]) -> Iterator[Row]:
        with open_plain(path) as source, pq.ParquetFile(source, pre_buffer=False) as opened:
            for batch in opened.iter_batches(1024, row_groups=which, columns=wanted):
                cells = batch.column(columns.sequence).to_pylist()
                tasks = [stem] * len(cells)
                if task is not None:
                    tasks = [str(each) for each in batch.column(task).to_pylist()]
                yield from zip(tasks, cells, strict=True)

    parts = [list(range(groups))[place::places] for place in range(places)]
    return [rows(part) for part in parts if part]


def _place(path: Path, names: Sequence[str], wanted: str) -> int:
    if wanted not in names:
        raise _lacking(path, wanted, names)
    return list(names).index(wanted)


def _task_column(path: Path, names: Sequence[str], columns: RowColumns) -> str | None:
    if columns.task is not None and columns.task not in names:
        raise _lacking_task(path, columns.task, names)
    return columns.task or (_TASK if _TASK in names else None)


def _lacking_task(path: Path, wanted: str, names: Any) -> InputError:
    return InputError(
        f"`{path}` should have a column `{wanted}`. Found {', '.join(map(str, names)) or 'none'}. Name "
        "the column of the tasks with `task_column`.",
        arguments=("task_column",),
    )


def _lacking(path: Path, wanted: str, names: Any) -> InputError:
    return InputError(
        f"`{path}` should have a column `{wanted}`. Found {', '.join(map(str, names)) or 'none'}. Name "
        "the column of the sequences with `sequence_column`.",
        arguments=("sequence_column",),
    )
