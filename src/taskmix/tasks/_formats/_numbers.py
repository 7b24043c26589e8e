"""Which cells of text are numbers, and when a column of them is one of numbers.

A column whose cells are numbers but for a few holds numbers: a single `n/k` among six hundred says that
one value is not known, and not that the other 599 are names. The share is that of the cells that say
anything, over all files of a task. At 95 in a hundred it takes nineteen numbers to outvote one word, so
that short columns of codes (`1`, `2`, `2a`) stay text, while in real tables words for a missing value
are usually rarer. A column with fewer numbers, but at least half, stays text and that is noted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

LARGEST_EXACT = 2**53  # beyond it a float64 stands for several whole numbers
NUMERIC_SHARE = 0.95  # of the cells: with less, codes such as `2a` would turn into missing numbers
NOTED_SHARE = 0.5  # from here on it is worth a note that numbers are read as words
MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")  # a missing number, in text
# What Arrow reads as a floating number, which does not include 0x10.
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:nan|inf|infinity))$"


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
