"""JSON lines: one object a row, read by Arrow; by Python only where something is odd.

The second reading finds the first bad row. It also reads what Arrow does not, as `_values.py` has it. A
key that an object has twice is refused by both.

What Arrow must not be given, or would make too much of, `_objects.py` keeps from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as arrow_json

from taskmix.files import Allowance
from taskmix.tasks._formats._objects import (
    DEPTH_LIMIT,
    ObjectStream,
    OddRowError,
    inner_paths,
    python_bytes,
    table_bytes,
)
from taskmix.tasks._formats._streams import CheckedStream, arrow_file
from taskmix.tasks._formats._values import Reasons, table_of_values
from taskmix.tasks._formats._words import bad_file, quoted

_BLOCK = 4 * 2**20


def read_jsonl(
    path: Path, byte_limit: int | None, remarks: list[str] | None = None
) -> tuple[pa.Table, Reasons, Reasons]:
    """The table, why columns cannot be used, and why others are text although they have numbers."""
    table = _read_with_arrow(path, byte_limit, remarks)
    return (table, {}, {}) if table is not None else _read_with_python(path, byte_limit, remarks)


def _read_with_arrow(
    path: Path, byte_limit: int | None, remarks: list[str] | None = None
) -> pa.Table | None:
    """The table, or None where the file needs a closer look."""
    schema: pa.Schema | None = None
    block = _BLOCK
    while True:
        with (
            ObjectStream(path, byte_limit=byte_limit, remarks=remarks) as stream,
            arrow_file(stream) as source,
        ):
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


def _read_with_python(
    path: Path, byte_limit: int | None, remarks: list[str] | None = None
) -> tuple[pa.Table, Reasons, Reasons]:
    _check_table(path, byte_limit)
    columns: dict[str, list[Any]] = {}
    numbers: list[int] = []  # the row, as an editor shows it, of each object
    with CheckedStream(path, byte_limit=byte_limit, remarks=remarks) as stream:
        for number, row, _ in _rows(stream):
            for name in row:
                columns.setdefault(name, [None] * len(numbers))
            for name, cells in columns.items():
                cells.append(row.get(name))
            numbers.append(number)
    return table_of_values(columns, numbers, "line")


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
    row = parse_document(path, line, should, remedy, number)
    if not isinstance(row, dict):
        bad_file(path, should, quoted(line), remedy, number)
    return row


def parse_document(
    path: Path, data: bytes, should: str, remedy: str, number: int | None = None
) -> Any:
    """What JSON says; a sentence where it is none, of a row or of a whole document."""
    try:
        document = json.loads(data, object_pairs_hook=_once)
        if b"\\u" in data:
            json.dumps(document, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except json.JSONDecodeError as error:
        near = data if number is not None else data.decode()[max(error.pos - 30, 0) :][:60]
        line = "" if number is not None else f" in line {error.lineno}"
        found = f"{quoted(near)} ({error.msg}{line} at character {error.colno})"
        bad_file(path, should, found, remedy, number)
    except _TwiceError as error:
        should = "An object should have each key once."
        bad_file(path, should, f"{quoted(error.key)} twice", remedy, number)
    except UnicodeEncodeError:
        bad_file(path, should, f"half a surrogate pair: {quoted(data)}", remedy, number)
    except (RecursionError, ValueError):  # a number of thousands of digits is a ValueError
        bad_file(path, should, f"one too large to read: {quoted(data)}", remedy, number)
    if isinstance(document, dict | list) and _depth(document) > DEPTH_LIMIT:
        bad_file(path, should, f"one nested over {DEPTH_LIMIT} levels", remedy, number)
    return document


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
