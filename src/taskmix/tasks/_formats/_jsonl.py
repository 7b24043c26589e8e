"""JSON lines: one object a row, read by Arrow; by Python only where something is odd.

The second reading finds the first bad row. It also reads what Arrow does not: a column of numbers and
text, as text; and a column that mixes other types is no reason to refuse a file as long as nobody asks
for that column. A key that an object has twice is refused by both.

What Arrow must not be given, or would make too much of, `_objects.py` keeps from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as arrow_json

from taskmix.files import Allowance
from taskmix.tasks._formats._numbers import spell_number
from taskmix.tasks._formats._objects import (
    DEPTH_LIMIT,
    ObjectStream,
    OddRowError,
    inner_paths,
    python_bytes,
    table_bytes,
)
from taskmix.tasks._formats._streams import CheckedStream, arrow_file
from taskmix.tasks._formats._words import bad_file, quoted

_BLOCK = 4 * 2**20
_INT64 = 2**63

Reasons = dict[str, str]  # by column, as words of a sentence


def read_jsonl(path: Path, byte_limit: int | None) -> tuple[pa.Table, Reasons, Reasons]:
    """The table, why columns cannot be used, and why others are text although they have numbers."""
    table = _read_with_arrow(path, byte_limit)
    return (table, {}, {}) if table is not None else _read_with_python(path, byte_limit)


def _read_with_arrow(path: Path, byte_limit: int | None) -> pa.Table | None:
    """The table, or None where the file needs a closer look."""
    schema: pa.Schema | None = None
    block = _BLOCK
    while True:
        with ObjectStream(path, byte_limit=byte_limit) as stream, arrow_file(stream) as source:
            try:
                table = arrow_json.read_json(
                    source,
                    read_options=arrow_json.ReadOptions(block_size=block),
                    parse_options=arrow_json.ParseOptions(explicit_schema=schema),
                )
            except (pa.ArrowException, OddRowError) as error:
                if stream.problem is not None and not isinstance(stream.problem, OddRowError):
                    raise stream.problem from None
                if "block size" in str(error) and block == _BLOCK:
                    block = max(2 * stream.allowance.line, 2 * _BLOCK)  # a row is longer than that
                    continue
                return None
        if schema is None and any(_has_dates(field.type) for field in table.schema):
            # Arrow takes text that looks like a date for one. A task wants the text.
            schema = pa.schema([(field.name, _without_dates(field.type)) for field in table.schema])
            continue
        if table.num_rows != stream.objects:  # two objects in a row, or one over several
            return None
        if stream.size > block:  # threads read the blocks, and one of them is first to see a key
            first = first_keys(path, byte_limit)
            table = table.select([*first, *sorted(set(table.column_names) - set(first))])
        return table


def _has_dates(kind: pa.DataType) -> bool:
    nested = any(_has_dates(kind.field(place).type) for place in range(kind.num_fields))
    return nested or pa.types.is_timestamp(kind)


def _without_dates(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_dates(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        return pa.struct([(field.name, _without_dates(field.type)) for field in fields])
    return kind


def _read_with_python(path: Path, byte_limit: int | None) -> tuple[pa.Table, Reasons, Reasons]:
    _check_table(path, byte_limit)
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []  # the row, as an editor shows it, of each object
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        for number, row, _ in _rows(stream):
            for name in row:
                columns.setdefault(name, [None] * len(numbers))
            for name, cells in columns.items():
                cells.append(row.get(name))
            numbers.append(number)
    return table_of_cells(columns, numbers)


def table_of_cells(
    columns: Mapping[str, list[Any]],
    numbers: Sequence[int],  # of the rows, as an editor shows them
) -> tuple[pa.Table, Reasons, Reasons]:
    """Plain values of Python as a table; why columns cannot be used; and which are numbers and text."""
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


def _check_table(path: Path, byte_limit: int | None) -> None:
    """Raises what is wrong with a row, and where all of them make too large a table."""
    names: set[str] = set()
    inner: set[int] = set()
    size = 0
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        for count, (_, row, line) in enumerate(_rows(stream), start=1):
            size += python_bytes(line)
            names.update(row)
            inner.update(inner_paths(row))
            stream.allowance.check(size + table_bytes(len(names) + len(inner), count))


def _rows(stream: CheckedStream) -> Iterator[tuple[int, Mapping[str, Any], bytes]]:
    """The number of each row that is not blank, what it says and its bytes."""
    for number, line in enumerate(stream.lines(), start=1):
        if line.strip():
            yield number, _parse_row(stream.path, number, line, stream.allowance), line


def first_keys(path: Path, byte_limit: int | None) -> tuple[str, ...]:
    """The keys of the first row."""
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        return next((tuple(row) for _, row, _ in _rows(stream)), ())


def _parse_row(path: Path, number: int, line: bytes, bounds: Allowance) -> Mapping[str, Any]:
    """One row; a sentence where it is no object."""
    bounds.check(python_bytes(line))
    should = "Every row of a .jsonl file should be one JSON object."
    remedy = "Correct that row or take it out."
    try:
        row = json.loads(line, object_pairs_hook=_once)
        if b"\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except json.JSONDecodeError as error:
        found = f"{quoted(line)} ({error.msg} at character {error.colno})"
        bad_file(path, should, found, remedy, number)
    except _TwiceError as error:
        should = "An object should have each key once."
        bad_file(path, should, f"{quoted(error.key)} twice", remedy, number)
    except UnicodeEncodeError:
        bad_file(path, should, f"half a surrogate pair: {quoted(line)}", remedy, number)
    except (RecursionError, ValueError):  # a number of thousands of digits is a ValueError
        bad_file(path, should, f"one too large to read: {quoted(line)}", remedy, number)
    if not isinstance(row, dict):
        bad_file(path, should, quoted(line), remedy, number)
    if _depth(row) > DEPTH_LIMIT:
        bad_file(path, should, f"one nested over {DEPTH_LIMIT} levels", remedy, number)
    return row


class _TwiceError(Exception):
    """A key that an object has twice; never leaves this module."""

    def __init__(self, key: str) -> None:
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; which of two values of one key is meant nobody can tell."""
    row = dict(pairs)
    if len(row) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(key)
            seen.add(key)
    return row


def exact_cells(path: Path, name: str, byte_limit: int | None) -> pa.Array:
    """A column of numbers as the file writes them: a large whole number is not rounded."""
    cells: list[str | None] = []
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        for line in stream.lines():
            if line.strip():
                row = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
                cells.append(row.get(name))
    return pa.array(cells, pa.string())


def _depth(value: Any) -> int:
    """How many objects and lists are around the innermost value."""
    depth, level = 0, [value]
    while level:
        depth += 1
        inner = [item.values() if isinstance(item, dict) else item for item in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    return depth


def _mixture(cells: list[Any], numbers: Sequence[int]) -> str | None:
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
