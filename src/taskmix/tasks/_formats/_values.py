"""Columns of Python values as Arrow columns of one type each, and columns of text that hold numbers.

A column of text whose cells are numbers but for a few holds numbers: a single `n/k` among six hundred
says that one value is not known, and not that the other 599 are names. The share is that of the cells
that say anything, over all files of a task. At 95 in a hundred it takes nineteen numbers to outvote one
word, so that short columns of codes (`1`, `2`, `2a`) stay text, while in real tables words for a
missing value are usually rarer. A column with fewer numbers, but at least half, stays text and that is
noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._formats._words import quoted

Reasons = dict[str, str]  # by column, as words of a sentence
_LOOSE = {"a number", "text"}  # kinds of cells that may stand in one column
_LARGE_WHOLE, _LARGEST_WHOLE = pa.decimal128(38, 0), 10**38  # whole numbers beyond 64 bits
LARGEST_EXACT = 2**53  # beyond it a float64 stands for several whole numbers
NUMERIC_SHARE = 0.95  # of the cells: with less, codes such as `2a` would turn into missing numbers
NOTED_SHARE = 0.5  # from here on it is worth a note that numbers are read as words
_SAMPLED = 2000  # cells: where half of a column are numbers, none among so many is no chance
MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")  # a missing number, in text
# What Arrow reads as a floating number, which does not include 0x10.
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:nan|inf|infinity))$"


class CellColumns:
    """Columns of Python cells, which become Arrow columns of one type each, some rows at a time.

    Numbers beside text become text, and it is remembered why; a column that mixes other types is no
    reason to refuse a file as long as nobody asks for that column.
    """

    def __init__(self, unit: str = "row") -> None:
        self.count = 0  # rows
        self.size = 0  # bytes
        self._unit = unit  # of the numbers of rows
        self._chunks: dict[str, list[pa.Array]] = {}
        self._kinds: dict[
            str, dict[str, str]
        ] = {}  # by column and kind of cell, where the first is
        self._reasons: dict[str, str] = {}

    def add(
        self, columns: Mapping[str, Sequence[Any]], numbers: Sequence[int] | NDArray[np.int64]
    ) -> None:
        """More rows; `numbers` are those of an editor."""
        for name, cells in columns.items():
            if name not in self._chunks:
                self._chunks[name] = [pa.nulls(self.count)] if self.count else []
                self._kinds[name] = {}
            kinds = {kind for each in set(map(type, cells)) if (kind := _kind(each)) is not None}
            for kind in sorted(kinds - self._kinds[name].keys(), key=_first_place(cells)):
                place = _first_place(cells)(kind)
                where = f"{kind} in {self._unit} {numbers[place]}"
                self._kinds[name][kind] = f"{where} ({quoted(cells[place])})"
            self._chunks[name].append(self._array(name, cells))
            self.size += self._chunks[name][-1].nbytes
        for name in self._chunks.keys() - columns.keys():
            self._chunks[name].append(pa.nulls(len(numbers)))
        self.count += len(numbers)

    def _array(self, name: str, cells: Sequence[Any]) -> pa.Array:
        kinds = self._kinds[name].keys()
        if len(kinds) > 1 and kinds <= _LOOSE:
            return pa.array([_as_text(cell) for cell in cells], pa.string())
        if len(kinds) > 1:
            return pa.nulls(len(cells))
        try:
            return pa.array(cells)
        except (pa.ArrowException, OverflowError) as error:
            problem = error
        known = [cell for cell in cells if cell is not None]
        if all(isinstance(cell, int) and abs(cell) < _LARGEST_WHOLE for cell in known):
            exact = [None if cell is None else Decimal(cell) for cell in cells]
            return pa.array(exact, _LARGE_WHOLE)
        try:
            return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
        except (OverflowError, TypeError, ValueError):
            return self._unusable(name, len(cells), problem)

    def _unusable(self, name: str, count: int, problem: Exception) -> pa.Array:
        self._reasons[name] = f"cells that do not fit together ({quoted(str(problem))})"
        return pa.nulls(count)

    def table(self) -> tuple[pa.Table, Reasons, Reasons]:
        """The table, why columns cannot be used, and why others are text although they have numbers."""
        mixed: Reasons = {}
        columns: dict[str, Any] = {}
        for name, chunks in self._chunks.items():
            kinds = self._kinds[name]
            if len(kinds) > 1:
                first, second, *_ = kinds.values()
                reasons = mixed if kinds.keys() <= _LOOSE else self._reasons
                reasons[name] = f"{second} and {first.rpartition(' (')[0]}"
            columns[name] = self._joined(name, chunks, as_text=name in mixed)
            if name in self._reasons:
                columns[name] = pa.nulls(self.count)
        if (
            self.count and not columns
        ):  # a table without columns would not know how many rows it has
            columns[""] = pa.nulls(self.count)
        return pa.table(columns), self._reasons, mixed

    def _joined(self, name: str, chunks: list[pa.Array], *, as_text: bool) -> pa.ChunkedArray:
        if as_text:
            chunks = [numbers_as_text(c) if _is_number(c.type) else c for c in chunks]
        kinds = {chunk.type for chunk in chunks if not pa.types.is_null(chunk.type)}
        if len(kinds) < 2:
            kind = next(iter(kinds), pa.null())
            return pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
        try:
            if all(map(_is_number, kinds)):
                kind = pa.float64() if any(map(pa.types.is_floating, kinds)) else _LARGE_WHOLE
                return pa.chunked_array([chunk.cast(kind, safe=False) for chunk in chunks], kind)
            return pa.chunked_array([pa.array([c for each in chunks for c in each.to_pylist()])])
        except (pa.ArrowException, OverflowError) as error:
            return pa.chunked_array([self._unusable(name, self.count, error)])


def table_of_values(
    columns: Mapping[str, Sequence[Any]],
    numbers: Sequence[int],  # the row, as an editor shows it, of each value
) -> tuple[pa.Table, Reasons, Reasons]:
    """The table, why columns cannot be used, and why others are text although they have numbers."""
    found = CellColumns()
    found.add(columns, numbers)
    return found.table()


def _kind(cell: type) -> str | None:
    if issubclass(cell, type(None)):
        return None
    for known, kind in ((bool, "true or false"), (int | float, "a number"), (str, "text")):
        if issubclass(cell, known):
            return kind
    return "a list" if issubclass(cell, list) else "an object"


def _first_place(cells: Sequence[Any]) -> Callable[[str], int]:
    return lambda kind: next(p for p, cell in enumerate(cells) if _kind(type(cell)) == kind)


def _as_text(cell: str | float | None) -> str | None:
    return cell if cell is None or isinstance(cell, str) else spell_number(cell)


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def numbers_as_text(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Numbers as they are written; whole ones without a point."""
    if not pa.types.is_floating(column.type):
        return column.cast(pa.string())
    encoded = column.dictionary_encode()
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    words = [
        pa.array(list(map(spell_number, chunk.dictionary.to_pylist())), pa.string()).take(
            chunk.indices
        )
        for chunk in chunks
    ]
    return pa.chunked_array(words, pa.string()) if encoded is not chunks[0] else words[0]


@dataclass(frozen=True)
class OddCells:
    """The cells of a column that are no numbers, while most of the others are."""

    count: int
    numbers: int
    place: int  # the row of the first
    value: str
    are_missing: bool  # the column holds numbers, and these cells nothing; otherwise all are words


def trimmed_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without white space around it, and null where it says that there is nothing."""
    trimmed = pc.utf8_trim_whitespace(column)
    nothing = pc.is_in(trimmed, value_set=pa.array(MISSING_WORDS))
    return pc.if_else(nothing, pa.scalar(None, pa.string()), trimmed)


def are_numbers(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each cell is a number; null where there is nothing."""
    return pc.match_substring_regex(cells, _NUMBER)


def numbers_of(columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Cells of `trimmed_cells` as numbers, of one type in all columns; null where they are none."""
    null = pa.scalar(None, pa.string())
    cells = [pc.if_else(are_numbers(column), column, null) for column in columns]
    # Floating first: as an integer Arrow would also read 0x10.
    numbers = [column.cast(pa.float64()) for column in cells]
    try:
        return [column.cast(pa.int64()) for column in cells]
    except pa.ArrowInvalid:
        return numbers


def all_numbers(columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray] | None:
    """Columns of text as numbers, if every cell is one or empty; None if that is not seen at once."""
    blank = pa.scalar(None, pa.string())
    try:
        whole = [pc.if_else(pc.equal(column, ""), blank, column) for column in columns]
        numbers = [column.cast(pa.float64()) for column in whole]  # an integer might be 0x10
    except pa.ArrowInvalid:
        return None
    if any(pc.any(pc.is_nan(column)).as_py() for column in numbers):
        return None
    if all(column.null_count == len(column) for column in numbers):
        return None
    try:
        return [column.cast(pa.int64()) for column in whole]
    except pa.ArrowInvalid:
        return numbers


def may_be_numbers(columns: list[pa.ChunkedArray]) -> bool:
    """Whether any of some cells is a number, or a few cells are all there are."""
    for column in columns:
        places = np.random.default_rng(0).integers(0, max(len(column), 1), _SAMPLED)
        if (
            len(column) <= _SAMPLED
            or pc.any(are_numbers(trimmed_cells(column.take(pa.array(places))))).as_py()
        ):
            return True
    return False


def spell_number(value: float) -> str:
    """A number as text; a whole one without a point, as long as all its digits are known."""
    if isinstance(value, float) and math.isfinite(value) and abs(value) < LARGEST_EXACT:
        return str(int(value)) if value == int(value) else repr(value)
    return repr(value)
