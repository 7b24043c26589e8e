"""Sequences: from lines, cells or rows to one row a sequence.

Three shapes are known. A text file has one sequence a line. A table may have a sequence in each cell
of one column. A long table has one row for each time: a column that says which sequence, one that
says when, and the values observed then (numbers, or one column of words).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.tasks._columns import StackedFiles, cell_family, match_column, spell
from taskmix.tasks._loading._settings import Symbols, TaskSettings

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
    column = "line" if is_lines else _sequence_column(stack, settings)
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


def _sequence_column(stack: StackedFiles, settings: TaskSettings) -> str:
    return settings.sequence or match_column(stack.names, "sequence") or "sequence"


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
    """A list of symbols for each cell: at white space, or every character by itself."""
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
    name = _sequence_column(stack, settings)
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
    return _cut_again(stack, table, sizes)


def _codes(stack: StackedFiles, column: str) -> NDArray[np.int64]:
    """[row], a number for each different value."""
    cells = stack.column(column)
    should, remedy = f"`{column}` should have a value in every row.", _REMEDY
    stack.bad_where(pc.is_null(cells, nan_is_null=True), should, "nothing", remedy)
    if cell_family(cells.type) not in ("number", "text", "truth"):
        stack.bad(0, f"`{column}` should be numbers or text.", "something else", remedy)
    return spell(stack, column).codes
