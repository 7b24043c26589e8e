"""JSON lines: one object a row, read by Arrow; by Python only where Arrow finds something odd.

The second reading finds the first bad row. It also reads what Arrow does not: a column that mixes
types is no reason to refuse a file as long as nobody asks for that column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as arrow_json

from taskmix.tasks._streams import (
    DEPTH_LIMIT,
    LINE_LIMIT,
    CheckedStream,
    NestingError,
    bad_file,
    show,
)

_BLOCK = 4 * 2**20
_INT64 = 2**63


def read_jsonl(path: Path, byte_limit: int) -> tuple[pa.Table, dict[str, str]]:
    """The table, and for each column that cannot be used the reason."""
    table = _read_with_arrow(path, byte_limit)
    return (table, {}) if table is not None else _read_with_python(path, byte_limit)


def _read_with_arrow(path: Path, byte_limit: int) -> pa.Table | None:
    """The table, or None where the file needs a closer look."""
    schema: pa.Schema | None = None
    block = _BLOCK
    while True:
        with CheckedStream(path, byte_limit=byte_limit, watch_nesting=True) as stream:
            try:
                table = arrow_json.read_json(
                    pa.PythonFile(stream, mode="r"),
                    read_options=arrow_json.ReadOptions(block_size=block),
                    parse_options=arrow_json.ParseOptions(explicit_schema=schema),
                )
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, NestingError) as error:
                if stream.problem is not None and not isinstance(stream.problem, NestingError):
                    raise stream.problem from None
                if "block size" in str(error) and block == _BLOCK:
                    block = 2 * LINE_LIMIT  # a row is longer than a block
                    continue
                return None
        if schema is None and any(_has_dates(field.type) for field in table.schema):
            # Arrow takes text that looks like a date for one. A task wants the text.
            schema = pa.schema([(field.name, _without_dates(field.type)) for field in table.schema])
            continue
        lines = stream.rows + (not stream.ended_with_line)
        if table.num_rows == lines or table.num_rows == _count_rows(path, byte_limit):
            return table
        return None  # two objects in a line, or one over several


def _count_rows(path: Path, byte_limit: int) -> int:
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        return sum(1 for line in stream.lines() if line.strip())


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


def _read_with_python(path: Path, byte_limit: int) -> tuple[pa.Table, dict[str, str]]:
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []  # the row, as an editor shows it, of each object
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        for number, line in enumerate(stream.lines(), start=1):
            if not line.strip():
                continue
            row = parse_row(path, number, line)
            for name in row.keys() - columns.keys():
                columns[name] = [None] * len(numbers)
            for name, cells in columns.items():
                cells.append(row.get(name))
            numbers.append(number)
    arrays: dict[str, pa.Array] = {}
    reasons: dict[str, str] = {}
    for name, cells in columns.items():
        reason = _mixture(cells, numbers)
        if reason is None:
            try:
                arrays[name] = pa.array(_in_range(cells))
            except (pa.ArrowException, OverflowError) as error:
                reason = f"cells that do not fit together ({show(str(error))})"
        if reason is not None:
            arrays[name] = pa.nulls(len(numbers))
            reasons[name] = reason
    if numbers and not arrays:  # a table without columns would not know how many rows it has
        arrays[""] = pa.nulls(len(numbers))
    return pa.table(arrays), reasons


def parse_row(path: Path, number: int, line: bytes) -> Mapping[str, Any]:
    should = "Every row of a .jsonl file should be one JSON object."
    remedy = "Correct that row or take it out."
    try:
        row = json.loads(line)
        if b"\\u" in line:
            json.dumps(row, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except json.JSONDecodeError as error:
        found = f"{show(line)} ({error.msg} at character {error.colno})"
        bad_file(path, should, found, remedy, number)
    except UnicodeEncodeError:
        bad_file(path, should, f"half a surrogate pair: {show(line)}", remedy, number)
    except (RecursionError, ValueError):  # a number of thousands of digits is a ValueError
        bad_file(path, should, f"one too large to read: {show(line)}", remedy, number)
    if not isinstance(row, dict):
        bad_file(path, should, show(line), remedy, number)
    if _depth(row) > DEPTH_LIMIT:
        bad_file(path, should, f"one nested over {DEPTH_LIMIT} levels", remedy, number)
    return row


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        inner = [item.values() if isinstance(item, dict) else item for item in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    return depth


def _mixture(cells: list[Any], numbers: list[int]) -> str | None:
    """The first two cells that differ in type, as words of a sentence."""
    first: tuple[str, int] | None = None
    for cell, number in zip(cells, numbers, strict=True):
        if cell is None:
            continue
        family = _family(cell)
        if first is None:
            first = (family, number)
        elif family != first[0]:
            return f"{family} in row {number} ({show(cell)}) and {first[0]} in row {first[1]}"
    return None


def _family(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true or false"
    if isinstance(cell, int | float):
        return "a number"
    if isinstance(cell, str):
        return "text"
    return "a list" if isinstance(cell, list) else "an object"


def _in_range(cells: list[Any]) -> list[Any]:
    """Numbers as Arrow reads them: where one is not a 64-bit integer, all are floating."""
    if any(
        isinstance(cell, float) or (isinstance(cell, int) and not -_INT64 <= cell < _INT64)
        for cell in cells
    ):
        return [cell if cell is None else float(cell) for cell in cells]
    return cells
