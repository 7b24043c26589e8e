"""Columns of Python values as Arrow columns of one type each, where that can be.

Numbers beside text become text, and it is remembered why; a column that mixes other types is no reason
to refuse a file as long as nobody asks for that column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from taskmix.tasks._formats._numbers import spell_number
from taskmix.tasks._formats._words import quoted

_INT64 = 2**63

Reasons = dict[str, str]  # by column, as words of a sentence


def table_of_values(
    columns: Mapping[str, list[Any]],
    numbers: Sequence[int],  # the row, as an editor shows it, of each value
) -> tuple[pa.Table, Reasons, Reasons]:
    """The table, why columns cannot be used, and why others are text although they have numbers."""
    arrays: dict[str, pa.Array] = {}
    reasons: Reasons = {}
    mixed: Reasons = {}
    for name, cells in columns.items():
        reason = _mixture(cells, numbers)
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


def _mixture(cells: Sequence[Any], numbers: Sequence[int]) -> str | None:
    """The first two cells that differ in type, as words of a sentence."""
    first: tuple[str, int] | None = None
    for cell, number in zip(cells, numbers, strict=True):
        if cell is None:
            continue
        family = _family(cell) or ""
        if first is None:
            first = (family, number)
        elif family != first[0]:
            return f"{family} in row {number} ({quoted(cell)}) and {first[0]} in row {first[1]}"
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
