"""JSON, parsed by Python a megabyte at a time: one object a line, or a document in one of these shapes.

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

Arrow's own reader is several times as fast, but ends the process on some bad rows, takes text that looks
like a date for one, rounds large whole numbers, and cannot say which row is bad.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taskmix.files import Allowance
from taskmix.tasks._formats._streams import CheckedStream, add_note, filled_lines
from taskmix.tasks._formats._values import CellColumns
from taskmix.tasks._formats._words import bad_file, quoted

_BLOCK = 2**20
_ROWS = 2**14  # of a document, made columns at a time
_DEEPEST = 500  # brackets in brackets: what is made of more of them may end the process
_COLUMN, _CELL = 4096, 8  # bytes in a table, however short the column
# Bytes that Python takes for a list, an object, or an item of either.
_BYTES_OF_SIGN = (("[", 64), ("{", 240), (",", 48))
_SPLITS = frozenset({"train", "dev", "valid", "val", "validation", "test"})
_ROW_SHOULD = "Every row of a .jsonl file should be one JSON object."
_ROW_REMEDY = "Correct that row or take it out."
_SHOULD = (
    "A .json file should be a list of objects, an object of columns, or lists of objects by split or "
    "task."
)
_REMEDY = "Write a list with one object a row, or JSON lines (.jsonl)."
Row: TypeAlias = Mapping[str, Any]
Numbers: TypeAlias = Sequence[int] | NDArray[np.int64]  # of rows, as an editor shows them


class JsonFile:
    """The rows of a file, and what was found out about it."""

    def __init__(
        self, path: Path, byte_limit: int | None, remarks: list[str], *, expects_lines: bool
    ) -> None:
        self.path = path
        self.added: tuple[str, ...] = ()  # columns that the shape of a document adds
        self.numbers: NDArray[np.int64] | None = None  # the line of each row, where some are blank
        self._remarks = remarks
        with CheckedStream(
            path, byte_limit=byte_limit, remarks=remarks, is_document=True
        ) as stream:
            head = stream.peek(_BLOCK).lstrip()
            self.has_lines = (
                not head.startswith(b"[") if expects_lines else _has_lines(head, stream)
            )
            if self.has_lines:
                stream.has_lines = True
                if not expects_lines:
                    add_note(remarks, "has one object a line, and was read as JSON lines")
                self._read_lines(stream)
            else:
                if expects_lines:
                    add_note(remarks, "is one list, and was read as a JSON document")
                self._read_document(stream)

    def _read_lines(self, stream: CheckedStream) -> None:
        columns = _TableOfRows(stream.allowance, "line")
        numbers: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        for number, lines in stream.batches():
            kept = filled_lines(lines)
            numbers.append(kept + number)
            some = [lines[place] for place in kept]
            rows = _parse_rows(self.path, numbers[-1], some, stream.allowance)
            columns.add(rows, numbers[-1])
        if columns.cells.count and numbers[-1][-1:].sum() != columns.cells.count:
            self.numbers = np.concatenate(numbers)
        self.table, self.unusable, self.mixed = columns.cells.table()

    def _read_document(self, stream: CheckedStream) -> None:
        blocks: list[bytes] = []
        taken = 0
        while block := stream.read(_BLOCK):
            taken += 2 * python_bytes(block.decode("utf-8", "replace"))  # parsed, and as columns
            stream.allowance.check(taken)
            blocks.append(block)
        text = b"".join(blocks).decode()
        del blocks
        columns = _TableOfRows(stream.allowance, "row", taken)
        if text.strip():
            document = _parse(self.path, text, _SHOULD, _REMEDY)
            del text
            rows, name, values = self._rows_of(document)
            if name is not None and any(name in row for row in rows):
                name = None  # the rows say it themselves
            for start in range(0, len(rows), _ROWS):
                some = rows[start : start + _ROWS]
                more = {} if name is None else {name: values[start : start + _ROWS]}
                columns.add(some, range(start + 1, start + len(some) + 1), more)
            self.added = () if name is None else (name,)
        self.table, self.unusable, self.mixed = columns.cells.table()

    def _rows_of(self, document: Any) -> tuple[Sequence[Row], str | None, list[str]]:
        """The rows, and a column that the shape of the document adds to them: its name and values."""
        if isinstance(document, list):
            for number, row in enumerate(document, start=1):
                if not isinstance(row, dict):
                    bad_file(self.path, _SHOULD, quoted(row), _REMEDY, number)
            return document, None, []
        if not isinstance(document, dict) or not document:
            bad_file(self.path, _SHOULD, quoted(document), _REMEDY)
        header, body = document.get("columns"), document.get("data")
        if isinstance(header, list) and isinstance(body, list):
            return self._by_position(header, body), None, []
        lists = {key: value for key, value in document.items() if _are_rows(value)}
        if len(lists) == len(document) > 1 or (lists and set(map(str.lower, lists)) <= _SPLITS):
            column = "split" if {key.strip().lower() for key in lists} <= _SPLITS else "task"
            shown = ", ".join(map(quoted, list(lists)[:8]))
            add_note(self._remarks, f"has lists of rows by {column}: {shown}")
            named = [key for key, rows in lists.items() for _ in rows]
            return list(chain.from_iterable(lists.values())), column, named
        if len(lists) == 1:
            (key,) = lists
            if len(document) > 1:
                beside = "what stands beside it was left out"
                add_note(self._remarks, f"has its rows under {quoted(key)}; {beside}")
            return lists[key], None, []
        return self._columns_of(document), None, []

    def _by_position(self, header: list[Any], body: list[Any]) -> list[Row]:
        names = [str(name) for name in header]
        for number, row in enumerate(body, start=1):
            if not isinstance(row, list) or len(row) != len(names) or len(set(names)) < len(names):
                should = (
                    "Rows under `data` should have as many cells as `columns` has different names."
                )
                bad_file(self.path, should, quoted(row), _REMEDY, number)
        return [dict(zip(names, row, strict=True)) for row in body]

    def _columns_of(self, document: Row) -> Sequence[Row]:
        """Columns, as lists or by the numbers of rows; or rows by their numbers or names."""
        values = list(document.values())
        if all(isinstance(value, list) for value in values):
            lengths = {key: len(value) for key, value in document.items()}
            if len(set(lengths.values())) > 1:
                some = list(lengths.items())[:4]
                shown = ", ".join(f"{count} in {quoted(key)}" for key, count in some)
                should = "Columns of a .json file should be equally long."
                bad_file(self.path, should, shown, _REMEDY)
            return [dict(zip(document, row, strict=True)) for row in zip(*values, strict=True)]
        if all(isinstance(value, dict) and value for value in values):
            keys = list(values[0])
            if all(key.isdecimal() for key in keys):
                if any(value.keys() != values[0].keys() for value in values):
                    should = "Columns of a .json file should have the same rows."
                    bad_file(self.path, should, "others", _REMEDY)
                return [{name: column[key] for name, column in document.items()} for key in keys]
            if all(key.isdecimal() for key in document) or len(document) > len(keys):
                return values
        found = f"an object of {', '.join(map(quoted, list(document)[:5]))}"
        return bad_file(self.path, _SHOULD, found, _REMEDY)


def _has_lines(head: bytes, stream: CheckedStream) -> bool:
    """Whether the first line is an object by itself, and another one follows."""
    first, _, rest = head.partition(b"\n")
    if not first.startswith(b"{") or not rest.lstrip().startswith(b"{"):
        return False
    text = first.decode("utf-8", "replace")
    stream.allowance.check(python_bytes(text))
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


class _TableOfRows:
    """Makes columns of rows, while they do not become too many: a table has a cell for every key."""

    def __init__(self, allowance: Allowance, unit: str, taken: int = 0) -> None:
        self.cells = CellColumns(unit)
        self._allowance = allowance
        self._taken = taken  # bytes before there is any table
        self._names: dict[str, None] = {}
        self._inner: set[int] = set()  # ways to the keys of objects inside of rows

    def add(
        self,
        rows: Sequence[Row],
        numbers: Numbers,
        more: Mapping[str, list[Any]] | None = None,
    ) -> None:
        for row in rows:
            if not row.keys() <= self._names.keys():
                self._names.update(dict.fromkeys(row))
            self._inner.update(_inner_paths(row))
        columns = len(self._names) + len(self._inner)
        size = columns * (_COLUMN + _CELL * (self.cells.count + len(rows)))
        self._allowance.check(self._taken + self.cells.size + size)
        cells = {name: [row.get(name) for row in rows] for name in self._names}
        self.cells.add(cells | dict(more or {}), numbers)


def _inner_paths(row: Row) -> Iterator[int]:
    """One number for each way from the row to a key that is not its own."""
    waiting = [(v, hash(key)) for key, v in row.items() if isinstance(v, dict | list)]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                yield hash((place, key))
                waiting.append((item, hash((place, key))))
        elif isinstance(value, list) and value and not isinstance(value[0], str | int | float):
            waiting += [(item, place) for item in value if isinstance(item, dict | list)]


def python_bytes(text: str) -> int:
    """What JSON takes in Python, about."""
    return len(text) + sum(size * text.count(sign) for sign, size in _BYTES_OF_SIGN)


def _parse_rows(path: Path, numbers: Numbers, lines: Sequence[str], bounds: Allowance) -> list[Row]:
    """The objects; all at once, or where one of them is odd, one by one, which says what is wrong."""
    whole = f"[{','.join(lines)}]"
    bounds.check(python_bytes(whole))
    plain = all(line[0] == "{" and line[-1] == "}" for line in lines) and not _is_odd(whole, lines)
    if plain:
        try:
            rows: list[Any] = json.loads(whole, object_pairs_hook=_once)
            if len(rows) == len(lines) and all(isinstance(row, dict) for row in rows):
                return rows
        except (ValueError, RecursionError, _TwiceError):
            pass
    found: list[Row] = []
    for number, line in zip(numbers, lines, strict=True):
        row = _parse(path, line, _ROW_SHOULD, _ROW_REMEDY, number)
        if not isinstance(row, dict):
            bad_file(path, _ROW_SHOULD, quoted(line), _ROW_REMEDY, number)
        found.append(row)
    return found


def _is_odd(whole: str, lines: Sequence[str]) -> bool:
    """Whether there may be half a surrogate pair, or brackets by the hundred, in a line."""
    if "\\ud" in whole or "\\uD" in whole:
        return True
    if whole.count("[") + whole.count("{") <= _DEEPEST:
        return False
    return any(line.count("[") + line.count("{") > _DEEPEST for line in lines)


def _parse(path: Path, text: str, should: str, remedy: str, number: int | None = None) -> Any:
    """What JSON says; a sentence where it is none, of a row or of a whole document."""
    try:
        document = json.loads(text, object_pairs_hook=_once)
        if "\\u" in text:
            json.dumps(document, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except json.JSONDecodeError as error:
        near = text if number is not None else text[max(error.pos - 30, 0) :][:60]
        line = "" if number is not None else f" in line {error.lineno}"
        found = f"{quoted(near)} ({error.msg}{line} at character {error.colno})"
        bad_file(path, should, found, remedy, number)
    except _TwiceError as error:
        should = "An object should have each key once."
        bad_file(path, should, f"{quoted(error.key)} twice", remedy, number)
    except UnicodeEncodeError:
        bad_file(path, should, f"half a surrogate pair: {quoted(text)}", remedy, number)
    except (RecursionError, ValueError):  # a number of thousands of digits is a ValueError
        bad_file(path, should, f"one too large to read: {quoted(text)}", remedy, number)
    if text.count("[") + text.count("{") > _DEEPEST and _depth(document) > _DEEPEST:
        bad_file(path, should, f"one nested over {_DEEPEST} levels", remedy, number)
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


def _depth(value: Any) -> int:
    """How many objects and lists are around the innermost value."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        inner = [item.values() if isinstance(item, dict) else item for item in level]
        level = list(chain.from_iterable(inner))
    return depth


def first_keys(path: Path, byte_limit: int | None) -> tuple[str, ...] | None:
    """The keys of the first of the lines; None where the file is a document."""
    with CheckedStream(path, byte_limit=byte_limit, is_document=True) as stream:
        if stream.peek(_BLOCK).lstrip().startswith(b"["):
            return None
        stream.has_lines = True
        for number, lines in stream.batches():
            for place in filled_lines(lines):
                line = lines[place]
                return tuple(_parse_rows(path, [number + place], [line], stream.allowance)[0])
    return ()
