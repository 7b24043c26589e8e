"""The files of a task one below the other, and their columns with one type over all files.

A cell of CSV is text, so a column of CSV holds numbers where nearly every cell of all files is one (or
is empty, or says NA; `_values.py` has the rule); otherwise it holds text. The other formats know their
types: numbers may be integers here and floating there; where numbers stand beside text, in one file or
in two, the rule of CSV decides; anything else that differs is an error.

Which column is meant by a name does not depend on upper or lower case: a header that was typed by hand,
or came out of a spreadsheet, says `Label`, `LABEL` or ` label `, and may have a byte order mark, a
non-breaking space or quotes around it. The exact name always wins.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.tasks._formats._readers import Rows
from taskmix.tasks._formats._values import (
    NOTED_SHARE,
    NUMERIC_SHARE,
    OddCells,
    all_numbers,
    are_numbers,
    may_be_numbers,
    numbers_as_text,
    numbers_of,
    trimmed_cells,
)
from taskmix.tasks._formats._words import quoted

_AROUND = (
    " \t\r\n\f\v\u00a0\u200b\u2060\ufeff\"'`"  # what may stand around a name and is none of it
)

# Where no column is called `label`, one of these is meant; the second lot only beside a text.
USUAL_LABELS = frozenset(
    {"labels", "target", "targets", "class", "classes", "y", "gold", "gold_label", "outcome"}
)
_OF_TEXTS = """
    category categories sentiment rating ratings score scores stars star overall intent emotion emotions
    polarity stance tag tags grade toxicity toxic hate spam is_spam verdict relevance similarity
    entailment topic topics type label_text label_name is_duplicate class_name
"""
USUAL_LABELS_OF_TEXTS = frozenset(_OF_TEXTS.split())


def folded_name(name: str) -> str:
    """What is left of a name when case, white space and quotes around it do not count."""
    return unicodedata.normalize("NFC", name).strip(_AROUND).strip().casefold()


def match_column(names: Iterable[str], wanted: str) -> str | None:
    """The column that is meant: of that very name, or the only one that differs in case and the like.

    None where there is none. Several such columns, none of them exact, are an `InputError`.
    """
    known = list(names)
    if wanted in known:
        return wanted
    folded = folded_name(wanted)
    found = [name for name in known if folded_name(name) == folded] if folded else []
    if len(found) > 1:
        shown = " and ".join(quoted(name) for name in found[:3])
        raise InputError(
            f"`{wanted}` should name one column. Found {shown}, which differ only in case or in what "
            "stands around the name. Write the name exactly, or rename one of them."
        )
    return found[0] if found else None


def usual_label(names: Iterable[str]) -> str | None:
    """The only column that is called as labels often are."""
    names = list(names)
    for usual in (USUAL_LABELS, USUAL_LABELS_OF_TEXTS):
        if found := [name for name in names if folded_name(name) in usual]:
            return found[0] if len(found) == 1 else None
    return None


Family = Literal["number", "text", "truth", "list", "nothing", "other"]


def cell_family(kind: pa.DataType) -> Family:
    """What cells of that type are to a task."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_dictionary(kind):
        return cell_family(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    if types.is_boolean(kind):
        return "truth"
    return "nothing" if types.is_null(kind) else "other"


def cells_of(part: Rows, name: str, *, as_text: bool = False) -> pa.ChunkedArray:
    """A column of one file as it was read."""
    names = part.table.column_names
    if name not in names:
        known = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        remedy = (
            "Add the column, or say which one is meant, in `task.toml` or as label or task column."
        )
        found = f"the columns {known or '(none)'}"
        if part.begins_with_data():
            found += ", which look like a row of data,"
            remedy = "Write a first row with the names of the columns."
        part.bad(f"There should be a column `{name}`.", found, remedy)
    reason = part.unusable.get(name) or (part.mixed.get(name) if as_text else None)
    if reason is not None:
        remedy = "Write all its values in the same way."
        part.bad(f"The column `{name}` should be of one type.", reason, remedy)
    return part.table.column(name)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in the one type we use for them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if cell_family(kind) == "text" and kind != pa.string():
        return column.cast(pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return column.cast(pa.float64())
    if cell_family(kind) == "list":
        inner = kind.value_type
        plain = pa.string() if cell_family(inner) == "text" else inner
        return column.cast(pa.list_(plain))
    return column


_WORDS: Mapping[Family, str] = {
    "number": "numbers",
    "text": "text",
    "truth": "true or false",
    "list": "lists",
    "nothing": "nothing",
    "other": "something else",
}


class StackedFiles:
    """Files of equal meaning, one below the other; `parts` are in the order of the rows."""

    def __init__(
        self,
        parts: Mapping[str, Rows],
        *,
        strict: bool = False,  # a cell that is no number, where the others are, is an error
        wanted: Mapping[str, Literal["number", "text"]] | None = None,  # known from training
    ) -> None:
        self.strict = strict
        self.wanted = wanted or {}
        self.splits = tuple(parts)
        self.parts = tuple(parts.values())
        self.sizes = np.array([part.table.num_rows for part in self.parts], dtype=np.int64)
        self.starts = np.concatenate(([0], np.cumsum(self.sizes)))
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._odd: dict[str, OddCells] = {}

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

    def where(self, place: int) -> str:
        """The file and the row, as they may stand in a note."""
        part = int(np.searchsorted(self.starts, place, side="right")) - 1
        return self.parts[part].where(place - int(self.starts[part]))

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

    def odd(self, name: str) -> OddCells | None:
        """The cells of the column that are no numbers, where most of the others are."""
        self.column(name)
        return self._odd.get(name)

    def numbers(self, name: str, purpose: str, *, may_miss: bool = False) -> NDArray[np.float64]:
        """A column of finite numbers; where some may be missing, NaN stands for them."""
        column = self.column(name)
        should = f"`{name}` should be a finite number in every row, {purpose}."
        remedy = "Correct that row or take it out."
        if cell_family(column.type) == "nothing" and may_miss:
            return np.full(len(column), np.nan)
        if cell_family(column.type) != "number":
            wrong = self._first_not_number(column)
            self.bad(wrong, should, quoted(column[wrong].as_py()), remedy)
        if (odd := self.odd(name)) and not may_miss:
            self.bad(odd.place, should, quoted(odd.value), remedy)
        if not may_miss:
            self.bad_where(pc.is_null(column), should, "no value", remedy)
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        places = np.flatnonzero(np.isinf(values) if may_miss else ~np.isfinite(values))
        if len(places):
            self.bad(int(places[0]), should, str(values[places[0]]), remedy)
        return np.asarray(values, dtype=np.float64)

    def text(self, name: str, purpose: str, *, may_miss: bool = False) -> pa.ChunkedArray:
        """A column of text, with a value in every row; where some may be missing, empty text is."""
        should = f"`{name}` should be text in every row, {purpose}."
        remedy = "Correct that row or take it out."
        chunks: list[pa.Array] = []
        for part in self.parts:
            column = plain(cells_of(part, name, as_text=True))
            if may_miss and cell_family(column.type) in ("text", "nothing"):
                column = pc.fill_null(column.cast(pa.string()), "")
            wrong = pc.is_null(column)
            if cell_family(column.type) not in ("text", "nothing"):
                wrong = pa.array(np.ones(len(column), dtype=np.bool_))
            place = pc.index(wrong, pa.scalar(True)).as_py()
            if place >= 0:
                cell = column[place].as_py()
                found = "nothing" if cell is None else quoted(cell)
                part.bad(should, found, remedy, place)
            chunks += column.cast(pa.string()).chunks
        whole = pa.chunked_array(chunks, pa.string())
        self.check_characters(name, whole)
        return whole

    def items(
        self, cells: pa.ChunkedArray, should: str, *, words: bool = False, may_miss: bool = False
    ) -> tuple[pa.Array, NDArray[np.int64]]:
        """The items of lists one after another, and [row + 1] where those of each row begin.

        They are text with something in it, or where not only `words` may stand there, numbers or truth.
        """
        remedy = "Correct that row or take it out."
        if cell_family(cells.type) != "list":
            self.bad(0, should, quoted(cells[0].as_py()), remedy)
        if not may_miss:
            self.bad_where(pc.is_null(cells), should, "nothing", remedy)
        lengths = np.asarray(
            pc.fill_null(pc.list_value_length(cells), 0).to_numpy(), dtype=np.int64
        )
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        flat = pc.list_flatten(cells).combine_chunks()
        if not isinstance(flat, pa.Array):  # what has no items has no chunks to combine
            flat = pa.array([], flat.type)
        family = cell_family(flat.type)
        wrong = pa.array(np.ones(len(flat), dtype=np.bool_))
        if family == "text":
            wrong = pc.or_(pc.equal(flat, ""), pc.match_substring(flat, "\0"))
            wrong = pc.fill_null(wrong, fill_value=True)
        elif family in ("number", "truth", "nothing") and not words:
            wrong = pc.is_null(flat, nan_is_null=True)
        place = pc.index(wrong, pa.scalar(True)).as_py()
        if place >= 0:
            row = int(np.searchsorted(offsets, place, side="right")) - 1
            self.bad(row, should, quoted(flat[place].as_py()), remedy)
        return flat, offsets

    def check_characters(self, name: str, column: pa.ChunkedArray | pa.Array) -> None:
        """A NUL may be written as an escape, which the check of the bytes does not see."""
        if len(column):
            should, remedy = f"`{name}` should have no NUL character.", "Take it out."
            self.bad_where(pc.match_substring(column, "\0"), should, "one", remedy)

    def _unite(self, name: str) -> pa.ChunkedArray:
        columns = [plain(cells_of(part, name)) for part in self.parts]
        if self._is_loose(name, columns):
            columns = self._numbers_or_text(name, columns)
        families = [cell_family(column.type) for column in columns]
        first: Family = next((found for found in families if found != "nothing"), "nothing")
        for part, found in zip(self.parts, families, strict=True):
            if found not in (first, "nothing"):
                other = self.parts[families.index(first)].path.name
                part.bad(
                    f"The column `{name}` should be of one type.",
                    f"{_WORDS[found]} beside {_WORDS[first]} in {other}",
                    "Write all its values in the same way.",
                )
        kind = _common([column.type for column in columns if cell_family(column.type) == first])
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

    def _is_loose(self, name: str, columns: list[pa.ChunkedArray]) -> bool:
        """Whether text may be numbers: in formats without types, and beside numbers."""
        typed = {
            cell_family(column.type)
            for part, column in zip(self.parts, columns, strict=True)
            if not part.is_loose(name)
        }
        typed -= {"nothing"}
        if any(name in part.mixed for part in self.parts):
            typed.add("number")
        if self.wanted.get(name) == "number" and typed == {"text"}:
            return True  # numbers in quotes, in rows for a model that learned numbers
        return typed in (set(), {"number"}, {"number", "text"})

    def _numbers_or_text(self, name: str, columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
        """Columns of numbers where nearly all cells are some, and columns of text otherwise."""
        places = [place for place, each in enumerate(columns) if cell_family(each.type) == "text"]
        wanted = self.wanted.get(name)
        if wanted is None and len(places) == len(columns):  # most columns end here
            if not may_be_numbers(columns):
                return columns
            if (numbers_only := all_numbers(columns)) is not None:
                return numbers_only
        texts = {place: trimmed_cells(columns[place]) for place in places}
        masks = {place: are_numbers(cells) for place, cells in texts.items()}
        others = [each for place, each in enumerate(columns) if place not in texts]
        typed = sum(len(each) - each.null_count for each in others)
        numbers = typed + sum(pc.sum(mask).as_py() or 0 for mask in masks.values())
        valid = typed + sum(len(mask) - mask.null_count for mask in masks.values())
        is_number = wanted == "number" or (
            wanted is None and valid > 0 and numbers >= NUMERIC_SHARE * valid
        )
        if numbers < valid and (is_number or numbers >= NOTED_SHARE * valid):
            self._odd[name] = self._odd_cells(texts, masks, valid - numbers, numbers, is_number)
        if is_number:
            if self.strict and name in self._odd:
                odd = self._odd[name]
                should = f"`{name}` should be a number in every row, as it is in the others."
                remedy = (
                    "Correct it or leave the cell empty; without `strict` it counts as missing."
                )
                self.bad(odd.place, should, quoted(odd.value), remedy)
            for place, column in zip(places, numbers_of([*texts.values()]), strict=True):
                columns[place] = column
            return columns
        return [
            numbers_as_text(each) if cell_family(each.type) == "number" else each
            for each in columns
        ]

    def _odd_cells(
        self,
        texts: Mapping[int, pa.ChunkedArray],
        masks: Mapping[int, pa.ChunkedArray],
        count: int,
        numbers: int,
        are_missing: bool,
    ) -> OddCells:
        for part, mask in masks.items():
            place = pc.index(mask, pa.scalar(False)).as_py()
            if place >= 0:
                row = int(self.starts[part]) + place
                value = texts[part][place].as_py()
                return OddCells(count, numbers, row, value, are_missing)
        raise AssertionError("some cell should be odd")

    def _first_not_number(self, column: pa.ChunkedArray) -> int:
        if cell_family(column.type) != "text":
            return 0
        for place, cell in enumerate(column.to_pylist()):
            try:
                float(cell)
            except (TypeError, ValueError):
                return place
        return 0


def _common(kinds: list[pa.DataType]) -> pa.DataType:
    """One type for all: that of the first, but numbers are widened where they differ."""
    if len(set(kinds)) > 1 and cell_family(kinds[0]) == "number":
        is_signed = all(pa.types.is_signed_integer(kind) for kind in kinds)
        return pa.int64() if is_signed else pa.float64()
    return kinds[0]
