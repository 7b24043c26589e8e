"""Sequences: from lines, cells or rows to one row a sequence.

Three shapes are known. A text file has one sequence a line. A table may have a sequence in each cell
of one column: text that is cut, or a list of symbols or of vectors. A long table has one row for each
time: a column that says which sequence, one that says when, and the values observed then (numbers, or
one column of words).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.errors import OptionError, TaskFileError
from taskmix.tasks._columns._spelling import spell
from taskmix.tasks._columns._stack import StackedFiles, cell_family, match_column
from taskmix.tasks._formats._readers import read_rows
from taskmix.tasks._formats._words import bad_file
from taskmix.tasks._loading._settings import Symbols, TaskSettings
from taskmix.tasks._loading._splits import task_files

_REMEDY = "Correct that row or take it out."


def holds_sequences(stack: StackedFiles, settings: TaskSettings) -> bool:
    """Whether the files are sequences: said so, lines of text, or columns `sequence` and `t`."""
    if settings.kind is not None:
        return settings.kind == "sequences"
    if settings.label is not None:
        return False
    said = settings.sequence is not None or settings.time is not None
    if said or stack.parts[0].format == "txt":
        return True
    return all(match_column(stack.names, name) is not None for name in ("sequence", "t"))


def gather_sequences(
    stack: StackedFiles, settings: TaskSettings, keep: Sequence[str]
) -> tuple[StackedFiles, str | None]:
    """Files with one row a sequence, in the column `symbols` or `values`, and the columns kept.

    Also the column that names the task, where the sequences themselves do.
    """
    time = settings.time or match_column(stack.names, "t")
    is_lines = stack.parts[0].format == "txt"
    if time is not None and not is_lines:
        return _gather_rows(stack, settings, time, keep), None
    column = "line" if is_lines else _sequence_column(stack, settings, keep)
    if cell_family(stack.parts[0].table.column(column).type) == "list":
        symbols = _listed(stack, column)
        if not pa.types.is_string(symbols.type.value_type):
            columns = {name: stack.column(name) for name in keep}
            return _cut_again(stack, pa.table({**columns, "values": symbols}), stack.sizes), None
    else:
        symbols = cut_symbols(stack.text(column, "as a sequence"), settings.symbols or "words")
    should = f"`{column}` should have at least one symbol in every row."
    stack.bad_where(pc.equal(pc.list_value_length(symbols), 0), should, "none", _REMEDY)
    columns = {name: stack.column(name) for name in keep}
    if settings.first_symbol_is_task:
        columns["task"] = pc.list_element(symbols, 0)
        symbols = pc.list_slice(symbols, 1).cast(pa.list_(pa.string()))
        should = f"`{column}` should have a task and at least one symbol in every row."
        stack.bad_where(pc.equal(pc.list_value_length(symbols), 0), should, "one word", _REMEDY)
    table = pa.table({**columns, "symbols": symbols})
    return _cut_again(stack, table, stack.sizes), "task" if "task" in columns else None


def _sequence_column(
    stack: StackedFiles, settings: TaskSettings, keep: Sequence[str], *, long: bool = False
) -> str:
    """The column of the sequences, or of their names in a `long` table; the only one it can be."""
    name = settings.sequence or "sequence"
    if (found := match_column(stack.names, name)) is not None:
        return found
    others = [each for each in stack.names if each and each not in keep]
    if settings.sequence is None and not long and len(others) == 1:
        return others[0]
    part = stack.parts[0]
    listed = ", ".join(stack.names[:20]) + (", ..." if len(stack.names) > 20 else "")
    remedy = "Name the column of the sequences with `sequence_column`"
    if not keep:
        remedy += ", and the one that says whose they are with `task_column`"
    if part.begins_with_data():
        remedy = "Write a first row with the names of the columns"
    try:
        part.bad(
            f"There should be a column `{name}`.", f"the columns {listed or '(none)'}", f"{remedy}."
        )
    except TaskFileError as error:
        error.arguments = ("sequence_column", "task_column")
        raise


def _listed(stack: StackedFiles, column: str) -> pa.ChunkedArray:
    """Lists of words as they are, of whole numbers as words; of other numbers, vectors."""
    cells = stack.column(column)
    inner = cells.type.value_type
    should = f"`{column}` should have a list of symbols or of vectors in every row."
    stack.bad_where(pc.is_null(cells), should, "nothing", _REMEDY)
    stack.bad_where(pc.equal(pc.list_value_length(cells), 0), should, "an empty one", _REMEDY)
    family = cell_family(inner)
    if family == "text" or pa.types.is_integer(inner):
        return cells.cast(pa.list_(pa.string()))
    if family == "number":
        chunks = []
        for chunk in cells.chunks:
            numbers = chunk.cast(pa.list_(pa.float64())).flatten()
            inside = pa.ListArray.from_arrays(np.arange(len(numbers) + 1, dtype=np.int32), numbers)
            lengths = pc.list_value_length(chunk).to_numpy(zero_copy_only=False)
            ends = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
            chunks.append(pa.ListArray.from_arrays(pa.array(ends), inside))
        return pa.chunked_array(chunks, pa.list_(pa.list_(pa.float64())))
    if family != "list" or cell_family(inner.value_type) != "number":
        stack.bad(0, should, f"{inner} in it", "Write words, whole numbers, or lists of numbers.")
    return cells.cast(pa.list_(pa.list_(pa.float64())))


def _cut_again(stack: StackedFiles, table: pa.Table, sizes: NDArray[np.int64]) -> StackedFiles:
    """The table as parts of the stack's files."""
    parts = {}
    start = 0
    for split, part, size in zip(stack.splits, stack.parts, sizes.tolist(), strict=True):
        parts[split] = replace(
            part, table=table.slice(start, size), unusable={}, typed=True, mixed={}, places=None
        )
        start += size
    return StackedFiles(parts)


def cut_symbols(cells: pa.ChunkedArray, how: Symbols) -> pa.ChunkedArray:
    """A list of symbols for each cell: at white space, or every character by itself.

    >>> import pyarrow as pa
    >>> cut_symbols(pa.chunked_array([["go on", "go"]]), "words").to_pylist()
    [['go', 'on'], ['go']]
    """
    cut = _words if how == "words" else _characters
    return pa.chunked_array([cut(chunk) for chunk in cells.chunks], pa.list_(pa.string()))


def _words(cells: pa.StringArray) -> pa.ListArray:
    trimmed = pc.utf8_trim_whitespace(cells)
    lists = pc.utf8_split_whitespace(trimmed)
    if pc.any(pc.equal(trimmed, "")).as_py():  # Arrow cuts nothing into one empty word
        empty = pa.scalar([], pa.list_(pa.string()))
        lists = pc.if_else(pc.equal(trimmed, ""), empty, lists)
    return lists


def _characters(cells: pa.StringArray) -> pa.ListArray:
    text = "".join(cells.to_pylist())
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    distinct, places = np.unique(codes, return_inverse=True)
    alphabet = pa.array([chr(code) for code in distinct], pa.string())
    lengths = np.asarray(pc.utf8_length(cells).to_numpy(zero_copy_only=False), dtype=np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), alphabet.take(pa.array(places)))


def _gather_rows(
    stack: StackedFiles, settings: TaskSettings, time: str, keep: Sequence[str]
) -> StackedFiles:
    name = _sequence_column(stack, settings, keep, long=True)
    apart = {name, time, *keep, *(settings.ignore or ())}
    columns = settings.values or tuple(c for c in stack.names if c and c not in apart)
    if not columns:
        raise OptionError(
            f"A table of sequences should have value columns beside {', '.join(sorted(apart))}. "
            "Found none. Name them in `values`."
        )
    is_word = len(columns) == 1 and cell_family(stack.column(columns[0]).type) == "text"
    cells = (
        stack.text(columns[0], "as a symbol").combine_chunks()
        if is_word
        else np.column_stack([stack.numbers(column, "as an observed value") for column in columns])
    )
    times = stack.numbers(time, "as the time")
    keys = [stack.split_codes, *(_codes(stack, column) for column in [*keep, name])]
    order = np.lexsort((times, *reversed(keys)))
    changes = np.zeros(len(order), dtype=np.bool_)
    changes[:1] = True
    for key in keys:
        changes[1:] |= np.diff(key[order]) != 0
    again = np.flatnonzero((np.diff(times[order]) == 0) & ~changes[1:])
    for place in again[:1]:
        row = int(max(order[place], order[place + 1]))
        found = f"{times[row]:g} twice"
        stack.bad(row, f"A sequence should have each `{time}` once.", found, _REMEDY)
    starts = np.flatnonzero(changes)
    outer = pa.array(np.append(starts, len(order)).astype(np.int32))
    if is_word:
        items = cells.take(pa.array(order))
    else:
        inner = np.arange(0, cells.size + 1, len(columns), dtype=np.int32)
        items = pa.ListArray.from_arrays(pa.array(inner), pa.array(cells[order].ravel()))
    table = pa.table({"symbols" if is_word else "values": pa.ListArray.from_arrays(outer, items)})
    first = pa.array(order[starts])
    for column in keep:
        table = table.append_column(column, stack.column(column).take(first))
    sizes = np.bincount(stack.split_codes[order[starts]], minlength=len(stack.parts))
    gathered = _cut_again(stack, table, sizes)
    # No rows of the file any more: nothing is to be read again from its lines.
    parts = (replace(part, format="parquet") for part in gathered.parts)
    return StackedFiles(dict(zip(gathered.splits, parts, strict=True)))


def _codes(stack: StackedFiles, column: str) -> NDArray[np.int64]:
    """[row], a number for each different value."""
    cells = stack.column(column)
    should, remedy = f"`{column}` should have a value in every row.", _REMEDY
    stack.bad_where(pc.is_null(cells, nan_is_null=True), should, "nothing", remedy)
    if cell_family(cells.type) not in ("number", "text", "truth"):
        stack.bad(0, f"`{column}` should be numbers or text.", "something else", remedy)
    return spell(stack, column).codes


@dataclass(frozen=True, eq=False)
class SequenceRows:
    """The sequences of a file, and the task of each where the file says it."""

    sequences: list[Any]  # words, or arrays [time, dimension]
    tasks: list[str] | None


def read_sequences(
    path: Path,
    *,
    symbols: Symbols | None = None,
    sequence_column: str | None = None,
    task_column: str | None = None,
    time_column: str | None = None,
    first_symbol_is_task: bool | None = None,
) -> SequenceRows:
    """All sequences of a file, in the order of its rows; a column `task` is taken for the task's.

    In a folder every file is a task, which is called after it.

    >>> from pathlib import Path
    >>> _ = Path("words.txt").write_text("ab\\nba\\n")
    >>> read_sequences(Path("words.txt"), symbols="characters").sequences
    [['a', 'b'], ['b', 'a']]
    """
    settings = TaskSettings(
        sequence=sequence_column,
        time=time_column,
        symbols=symbols,
        first_symbol_is_task=first_symbol_is_task,
    )
    if path.is_dir():
        files = task_files(sorted(path.iterdir()))
        if not files:
            bad_file(
                path, "The folder should have a file for each task.", "none", "Check the path."
            )
        found = [_read(file, settings, task_column) for file in files]
        return SequenceRows(
            [row for rows in found for row in rows.sequences],
            [
                name
                for file, rows in zip(files, found, strict=True)
                for name in rows.tasks or [file.name.split(".")[0]] * len(rows.sequences)
            ],
        )
    return _read(path, settings, task_column)


def _read(path: Path, settings: TaskSettings, task_column: str | None) -> SequenceRows:
    stack = StackedFiles({"": read_rows(path)})
    column = task_column or match_column(stack.names, "task")
    if column is not None and stack.parts[0].format == "txt":
        column = None
    kept = [] if column is None else [match_column(stack.names, column) or column]
    gathered, inner = gather_sequences(stack, settings, kept)
    named = inner or (kept[0] if kept else None)
    tasks = None
    if named is not None:
        tasks = [str(cell) for cell in gathered.column(named).to_pylist()]
    table = gathered.parts[0].table
    if "symbols" in table.column_names:
        return SequenceRows(table.column("symbols").to_pylist(), tasks)
    vectors = [
        np.array([[np.nan if number is None else number for number in each] for each in row])
        for row in table.column("values").to_pylist()
    ]
    return SequenceRows(vectors, tasks)
