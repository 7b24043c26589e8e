"""Columns of Python values as Arrow columns of one type each, where that can be.

Numbers beside text become text, and it is remembered why; a column that mixes other types is no reason
to refuse a file as long as nobody asks for that column.

A column of text whose cells are numbers but for a few holds numbers: a single `n/k` among six hundred
says that one value is not known, and not that the other 599 are names. The share is that of the cells
that say anything, over all files of a task. At 95 in a hundred it takes nineteen numbers to outvote one
word, so that short columns of codes (`1`, `2`, `2a`) stay text, while in real tables words for a
missing value are usually rarer. A column with fewer numbers, but at least half, stays text and that is
noted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._formats._words import quoted

_INT64 = 2**63

Reasons = dict[str, str]  # by column, as words of a sentence
LARGEST_EXACT = 2**53  # beyond it a float64 stands for several whole numbers
NUMERIC_SHARE = 0.95  # of the cells: with less, codes such as `2a` would turn into missing numbers
NOTED_SHARE = 0.5  # from here on it is worth a note that numbers are read as words
MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")  # a missing number, in text
# What Arrow reads as a floating number, which does not include 0x10.
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:nan|inf|infinity))$"


def table_of_values(
    columns: Mapping[str, list[Any]],
    numbers: Sequence[int],  # the row, as an editor shows it, of each value
    unit: str = "row",  # of these numbers
) -> tuple[pa.Table, Reasons, Reasons]:
    """The table, why columns cannot be used, and why others are text although they have numbers."""
    arrays: dict[str, pa.Array] = {}
    reasons: Reasons = {}
    mixed: Reasons = {}
    for name, cells in columns.items():
        reason = _mixture(cells, numbers, unit)
        if reason is not None and {_family(cell) for cell in cells} <= {"a number", "text", None}:
            arrays[name] = pa.array([_as_text(cell) for cell in cells], pa.string())
            mixed[name] = reason
            continue
        if reason is None:
            try:
                arrays[name] = pa.array(_in_range(cells))
            except (pa.ArrowException, OverflowError) as error:
                reason = f"cells that do not fit together ({quoted(str(error))})"
        if reason is not None:
            arrays[name] = pa.nulls(len(numbers))
            reasons[name] = reason
    if numbers and not arrays:  # a table without columns would not know how many rows it has
        arrays[""] = pa.nulls(len(numbers))
    return pa.table(arrays), reasons, mixed


def _mixture(cells: Sequence[Any], numbers: Sequence[int], unit: str) -> str | None:
    """The first two cells that differ in type, as words of a sentence."""
    first: tuple[str, int] | None = None
    for cell, number in zip(cells, numbers, strict=True):
        if cell is None:
            continue
        family = _family(cell) or ""
        if first is None:
            first = (family, number)
        elif family != first[0]:
            return (
                f"{family} in {unit} {number} ({quoted(cell)}) and {first[0]} in {unit} {first[1]}"
            )
    return None


def _family(cell: Any) -> str | None:
    if cell is None:
        return None
    if isinstance(cell, bool):
        return "true or false"
    if isinstance(cell, int | float):
        return "a number"
    if isinstance(cell, str):
        return "text"
    return "a list" if isinstance(cell, list) else "an object"


def _as_text(cell: str | float | None) -> str | None:
    return cell if cell is None or isinstance(cell, str) else spell_number(cell)


def _in_range(cells: list[Any]) -> list[Any]:
    """Numbers as Arrow reads them: where one is not a 64-bit integer, all are floating."""
    if any(
        isinstance(cell, float) or (isinstance(cell, int) and not -_INT64 <= cell < _INT64)
        for cell in cells
    ):
        return [cell if cell is None else float(cell) for cell in cells]
    return cells


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


def spell_number(value: float) -> str:
    """A number as text; a whole one without a point, as long as all its digits are known."""
    if isinstance(value, float) and math.isfinite(value) and abs(value) < LARGEST_EXACT:
        return str(int(value)) if value == int(value) else repr(value)
    return repr(value)
