"""The files of a task one below the other, and their columns with one type over all files.

A cell of CSV is text, so a column of CSV holds numbers where every cell of every file is one (or is
empty, or says NA); otherwise it holds text. The other formats know their types: numbers may be
integers here and floating there, anything else that differs is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._readers import Rows
from taskmix.tasks._streams import show

Family = Literal["number", "text", "truth", "list", "nothing", "other"]

_NOTHING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")  # a missing number, in CSV
_WORDS: Mapping[Family, str] = {
    "number": "numbers",
    "text": "text",
    "truth": "true or false",
    "list": "lists",
    "nothing": "nothing",
    "other": "something else",
}


def family(kind: pa.DataType) -> Family:
    """What cells of that type are to a task."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_dictionary(kind):
        return family(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    if types.is_boolean(kind):
        return "truth"
    return "nothing" if types.is_null(kind) else "other"


class Stack:
    """Files of equal meaning, one below the other; `parts` are in the order of the rows."""

    def __init__(self, parts: Mapping[str, Rows]) -> None:
        self.splits = tuple(parts)
        self.parts = tuple(parts.values())
        self.sizes = np.array([part.table.num_rows for part in self.parts], dtype=np.int64)
        self.starts = np.concatenate(([0], np.cumsum(self.sizes)))
        self._columns: dict[str, pa.ChunkedArray] = {}

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return tuple(self.parts[0].table.column_names)

    @property
    def split_codes(self) -> NDArray[np.int64]:
        """[row], the position of its file."""
        return np.repeat(np.arange(len(self.parts)), self.sizes)

    def bad(self, place: int, should: str, found: str, remedy: str) -> NoReturn:
        """Raise the sentence about one row."""
        part = int(np.searchsorted(self.starts, place, side="right")) - 1
        self.parts[part].bad(should, found, remedy, place - int(self.starts[part]))

    def bad_where(
        self, wrong: pa.ChunkedArray | pa.Array, should: str, found: str, remedy: str
    ) -> None:
        """Raise the sentence about the first row where `wrong` is true, if there is one."""
        place = pc.index(wrong, pa.scalar(True)).as_py()
        if place >= 0:
            self.bad(place, should, found, remedy)

    def column(self, name: str) -> pa.ChunkedArray:
        """The column, of one type over all files."""
        if name not in self._columns:
            self._columns[name] = self._unite(name)
        return self._columns[name]

    def numbers(self, name: str, purpose: str) -> NDArray[np.float64]:
        """A column of finite numbers."""
        column = self.column(name)
        should = f"`{name}` should be a finite number in every row, {purpose}."
        remedy = "Correct that row or take it out."
        if family(column.type) != "number":
            wrong = self._first_not_number(column)
            self.bad(wrong, should, show(column[wrong].as_py()), remedy)
        self.bad_where(pc.is_null(column), should, "no value", remedy)
        values = column.cast(pa.float64(), safe=False).to_numpy()
        places = np.flatnonzero(~np.isfinite(values))
        if len(places):
            self.bad(int(places[0]), should, str(values[places[0]]), remedy)
        return np.asarray(values, dtype=np.float64)

    def text(self, name: str, purpose: str) -> pa.ChunkedArray:
        """A column of text, with a value in every row."""
        should = f"`{name}` should be text in every row, {purpose}."
        remedy = "Correct that row or take it out."
        chunks: list[pa.Array] = []
        for part in self.parts:
            column = _plain(_cells(part, name))
            wrong = pc.is_null(column)
            if family(column.type) not in ("text", "nothing"):
                wrong = pa.array(np.ones(len(column), dtype=np.bool_))
            place = pc.index(wrong, pa.scalar(True)).as_py()
            if place >= 0:
                cell = column[place].as_py()
                found = "nothing" if cell is None else show(cell)
                part.bad(should, found, remedy, place)
            chunks += column.cast(pa.string()).chunks
        whole = pa.chunked_array(chunks, pa.string())
        self.check_characters(name, whole)
        return whole

    def check_characters(self, name: str, column: pa.ChunkedArray | pa.Array) -> None:
        """A NUL may be written as an escape, which the check of the bytes does not see."""
        if len(column):
            should, remedy = f"`{name}` should have no NUL character.", "Take it out."
            self.bad_where(pc.match_substring(column, "\0"), should, "one", remedy)

    def _unite(self, name: str) -> pa.ChunkedArray:
        cells = [_cells(part, name) for part in self.parts]
        untyped = [place for place, part in enumerate(self.parts) if not part.typed]
        columns = [_plain(cell) for cell in cells]
        for place, column in zip(
            untyped, _numbers_if_all([cells[place] for place in untyped]), strict=True
        ):
            columns[place] = column
        families = [family(column.type) for column in columns]
        first: Family = next((found for found in families if found != "nothing"), "nothing")
        for part, found in zip(self.parts, families, strict=True):
            if found not in (first, "nothing"):
                other = self.parts[families.index(first)].path.name
                part.bad(
                    f"The column `{name}` should be of one type.",
                    f"{_WORDS[found]} beside {_WORDS[first]} in {other}",
                    "Write all its values in the same way.",
                )
        kind = _common([column.type for column in columns if family(column.type) == first])
        chunks: list[pa.Array] = []
        for part, column in zip(self.parts, columns, strict=True):
            try:
                # Unsafe only in that an integer beyond 2**53 is rounded.
                chunks += column.cast(kind, safe=first != "number").chunks
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                types = f"{column.type} beside {kind}"
                remedy = "Write all its values in the same way."
                part.bad(f"The column `{name}` should be of one type.", types, remedy)
        return pa.chunked_array(chunks, kind)

    def _first_not_number(self, column: pa.ChunkedArray) -> int:
        if family(column.type) != "text":
            return 0
        for place, cell in enumerate(column.to_pylist()):
            try:
                float(cell)
            except (TypeError, ValueError):
                return place
        return 0


def _cells(part: Rows, name: str) -> pa.ChunkedArray:
    """A column of one file as it was read."""
    names = part.table.column_names
    if name not in names:
        known = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        remedy = (
            "Add the column, or say which one is meant (`--label`, `--task-column`, `task.toml`)."
        )
        part.bad(f"There should be a column `{name}`.", f"the columns {known or '(none)'}", remedy)
    if name in part.unusable:
        remedy = "Write all its values in the same way."
        part.bad(f"The column `{name}` should be of one type.", part.unusable[name], remedy)
    return part.table.column(name)


def _common(kinds: list[pa.DataType]) -> pa.DataType:
    """One type for all: that of the first, but numbers are widened where they differ."""
    if len(set(kinds)) > 1 and family(kinds[0]) == "number":
        is_signed = all(pa.types.is_signed_integer(kind) for kind in kinds)
        return pa.int64() if is_signed else pa.float64()
    return kinds[0]


def _numbers_if_all(columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Columns of text as numbers, if all cells of all of them are numbers or empty."""
    empty = pa.array(_NOTHING)
    cells = []
    for column in columns:
        trimmed = pc.utf8_trim_whitespace(column)
        nothing = pc.is_in(trimmed, value_set=empty)
        cells.append(pc.if_else(nothing, pa.scalar(None, pa.string()), trimmed))
    if all(column.null_count == len(column) for column in cells):
        return columns
    # Floating first: as an integer Arrow would also read 0x10.
    for kind in (pa.float64(), pa.int64()):
        try:
            columns = [column.cast(kind) for column in cells]
        except pa.ArrowInvalid:
            break
    return columns


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in the one type we use for them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if family(kind) == "text" and kind != pa.string():
        return column.cast(pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return column.cast(pa.float64())
    if family(kind) == "list":
        inner = kind.value_type
        plain = pa.string() if family(inner) == "text" else inner
        return column.cast(pa.list_(plain))
    return column
