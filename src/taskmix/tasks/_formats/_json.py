"""JSON documents: rows as a list of objects, and the other shapes that programs write tables in.

| the document                                             | what it is                              |
|----------------------------------------------------------|-----------------------------------------|
| `[{...}, {...}]`                                         | rows                                    |
| `{"text": [...], "label": [...]}`                        | columns of equal lengths                |
| `{"train": [{...}], "dev": [{...}]}`                     | rows, with a column `split`             |
| `{"books": [{...}], "dvd": [{...}]}`                     | rows, with a column `task`              |
| `{"data": [{...}], "version": ...}`                      | the rows of the only list               |
| `{"columns": [...], "data": [[...]]}`                    | pandas' `orient="split"`                |
| `{"text": {"0": ...}, "label": {"0": ...}}`              | pandas' `to_json()`                     |
| `{"0": {"text": ...}, "1": {...}}`                       | pandas' `orient="index"`                |
| one object a line                                        | JSON lines under another name           |

A document is read whole, so what it takes in Python is bounded before it is parsed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from taskmix.tasks._formats._jsonl import parse_document, read_jsonl
from taskmix.tasks._formats._objects import python_bytes
from taskmix.tasks._formats._streams import CheckedStream, add_note
from taskmix.tasks._formats._values import Reasons, table_of_values
from taskmix.tasks._formats._words import bad_file, quoted

_BLOCK = 2**20
_SPLITS = frozenset({"train", "dev", "valid", "val", "validation", "test"})
_SHOULD = (
    "A .json file should be a list of objects, an object of columns, or lists of objects by split or "
    "task."
)
_REMEDY = "Write a list with one object a row, or JSON lines (.jsonl)."


@dataclass(frozen=True)
class Read:
    """A table, and what else was found out of its file."""

    table: pa.Table
    unusable: Reasons = field(default_factory=dict)
    mixed: Reasons = field(default_factory=dict)
    added: tuple[str, ...] = ()
    is_lines: bool = False  # it has JSON lines


class _WholeText(CheckedStream):
    """A text whose lines may be as long as it is."""

    def _check_lines(self, block: bytes) -> None:
        """A document may stand in one line; what it takes is checked as a whole."""


def read_json(path: Path, byte_limit: int | None, remarks: list[str]) -> Read:
    """The rows of a document."""
    if _has_lines(path, byte_limit):
        add_note(remarks, "has one object a line, and was read as JSON lines")
        return Read(*read_jsonl(path, byte_limit, remarks), is_lines=True)
    return _read_document(path, byte_limit, remarks)


def begins_with_a_list(path: Path, byte_limit: int | None) -> bool:
    """Whether a file is one list, and no lines of objects."""
    with _WholeText(path, byte_limit=byte_limit) as stream:
        while block := stream.read(_BLOCK):
            if start := block.lstrip():
                return start.startswith(b"[")
    return False


def _has_lines(path: Path, byte_limit: int | None) -> bool:
    """Whether the first line is an object by itself, and another one follows."""
    with _WholeText(path, byte_limit=byte_limit) as stream:
        head = stream.read(_BLOCK).lstrip()
    first, _, rest = head.partition(b"\n")
    if not first.startswith(b"{") or not rest.lstrip().startswith(b"{"):
        return False
    stream.allowance.check(python_bytes(first))
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _read_document(path: Path, byte_limit: int | None, remarks: list[str]) -> Read:
    blocks: list[bytes] = []
    taken = 0
    with _WholeText(path, byte_limit=byte_limit, remarks=remarks) as stream:
        while block := stream.read(_BLOCK):
            taken += 2 * python_bytes(block)  # as it is parsed, and once more as columns
            stream.allowance.check(taken)
            blocks.append(block)
    data = b"".join(blocks)
    del blocks
    if not data.strip():
        return Read(pa.table({}))
    document = parse_document(path, data, _SHOULD, _REMEDY)
    del data
    rows, name, values = _rows_of(path, document, remarks)
    if name is not None and any(name in row for row in rows):
        name, values = None, None  # the rows say it themselves
    columns: dict[str, list[Any]] = {}
    names: set[str] = set()
    for row in rows:
        names.update(row)
    stream.allowance.check(taken + 8 * len(names) * len(rows))  # a cell for every key in every row
    for count, row in enumerate(rows):
        for key in row:
            columns.setdefault(key, [None] * count)
        for key, cells in columns.items():
            cells.append(row.get(key))
    if name is not None and values is not None:
        columns[name] = list(values)
    table, unusable, mixed = table_of_values(columns, range(1, len(rows) + 1))
    return Read(table, unusable, mixed, () if name is None else (name,))


Rows = Sequence[Mapping[str, Any]]


def _rows_of(
    path: Path, document: Any, remarks: list[str]
) -> tuple[Rows, str | None, list[str] | None]:
    """The rows, and a column that the shape of the document adds to them: its name and values."""
    if isinstance(document, list):
        for number, row in enumerate(document, start=1):
            if not isinstance(row, dict):
                bad_file(path, _SHOULD, quoted(row), _REMEDY, number)
        return document, None, None
    if not isinstance(document, dict) or not document:
        bad_file(path, _SHOULD, quoted(document), _REMEDY)
    header, body = document.get("columns"), document.get("data")
    if isinstance(header, list) and isinstance(body, list):
        return _by_position(path, header, body), None, None
    lists = {key: value for key, value in document.items() if _are_rows(value)}
    if len(lists) == len(document) > 1 or (lists and set(map(str.lower, lists)) <= _SPLITS):
        column = "split" if {key.strip().lower() for key in lists} <= _SPLITS else "task"
        add_note(
            remarks,
            f"has lists of rows by {column}: {', '.join(map(quoted, list(lists)[:8]))}",
        )
        named = [key for key, rows in lists.items() for _ in rows]
        return [row for rows in lists.values() for row in rows], column, named
    if len(lists) == 1:
        (key,) = lists
        if len(document) > 1:
            add_note(
                remarks,
                f"has its rows under {quoted(key)}; what stands beside it was left out",
            )
        return lists[key], None, None
    return _columns_of(path, document), None, None


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _by_position(path: Path, header: list[Any], body: list[Any]) -> Rows:
    names = [str(name) for name in header]
    for number, row in enumerate(body, start=1):
        if not isinstance(row, list) or len(row) != len(names) or len(set(names)) < len(names):
            should = "Rows under `data` should have as many cells as `columns` has different names."
            bad_file(path, should, quoted(row), _REMEDY, number)
    return [dict(zip(names, row, strict=True)) for row in body]


def _columns_of(path: Path, document: Mapping[str, Any]) -> Rows:
    """Columns, as lists or by the numbers of rows; or rows by their numbers or names."""
    values = list(document.values())
    if all(isinstance(value, list) for value in values):
        lengths = {key: len(value) for key, value in document.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(
                f"{count} in {quoted(key)}" for key, count in list(lengths.items())[:4]
            )
            bad_file(path, "Columns of a .json file should be equally long.", shown, _REMEDY)
        return [dict(zip(document, row, strict=True)) for row in zip(*values, strict=True)]
    if all(isinstance(value, dict) and value for value in values):
        keys = list(values[0])
        if all(key.isdecimal() for key in keys):
            if any(value.keys() != values[0].keys() for value in values):
                bad_file(
                    path, "Columns of a .json file should have the same rows.", "others", _REMEDY
                )
            return [{name: column[key] for name, column in document.items()} for key in keys]
        if all(key.isdecimal() for key in document) or len(document) > len(keys):
            return values
    return bad_file(
        path, _SHOULD, f"an object of {', '.join(map(quoted, list(document)[:5]))}", _REMEDY
    )
