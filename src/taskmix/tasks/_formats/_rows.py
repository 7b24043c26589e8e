"""A file as a table, and what is needed to speak of its rows in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._formats._conll import sentence_rows
from taskmix.tasks._formats._csv import CsvFile
from taskmix.tasks._formats._endings import Format
from taskmix.tasks._formats._streams import CheckedStream
from taskmix.tasks._formats._words import bad_file

_ROWS_LOOKED_AT = 1000
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class Rows:
    """A file as a table, and what is needed to speak of its rows in a sentence."""

    table: pa.Table
    path: Path  # for a data set of the hub, its name
    format: Format | Literal["hub"]
    unusable: Mapping[str, str] = field(default_factory=dict)  # why a column cannot be used
    byte_limit: int | None = None
    typed: bool = True  # in CSV every cell is text, whatever it says
    mixed: Mapping[str, str] = field(default_factory=dict)  # columns of numbers and text, as text
    remarks: tuple[
        str, ...
    ] = ()  # what was decided about the file: `is`, `has` or another verb first
    added: tuple[str, ...] = ()  # columns that are no part of the rows: `task` or `split`
    numbers: NDArray[np.int64] | None = (
        None  # the row of the file, where it cannot be counted again
    )
    places: NDArray[np.int64] | None = None  # which rows were kept, where some were left out
    original: Mapping[str, str] = field(default_factory=dict)  # names of columns that were renamed

    def is_loose(self, name: str) -> bool:
        """Whether the column is text because the file could not say that it is numbers."""
        return not self.typed or name in self.mixed

    def keep(self, kept: NDArray[np.bool_]) -> Rows:
        """Some of the rows, which are still called by their place in the file."""
        places = np.flatnonzero(kept)
        whole = places if self.places is None else self.places[places]
        return replace(self, table=self.table.filter(pa.array(kept)), places=whole)

    def begins_with_data(self) -> bool:
        """Whether what should be names of columns looks like the rows below: then there is no header."""
        if self.typed or not self.table.num_rows:
            return False
        head = self.table.slice(0, _ROWS_LOOKED_AT)
        for name, column in zip(head.column_names, head.columns, strict=True):
            cells = column.to_pylist()
            is_number = [_NUMBER.fullmatch(cell.strip()) is not None for cell in (name, *cells)]
            if name in cells or (all(is_number) and not name.strip().isdecimal()):
                return True  # a name does not stand in its column, nor is it 5.1
        return all(_NUMBER.fullmatch(name.strip()) for name in head.column_names)

    def row_number(self, place: int) -> int:
        """The row of the file, counted from 1 as an editor shows it, of a row of the table."""
        if self.places is not None:
            place = int(self.places[place])
        if self.numbers is not None:
            return int(self.numbers[place])
        return next(islice(self._row_numbers(), place, None), place + 1)

    def bad(self, should: str, found: str, remedy: str, place: int | None = None) -> NoReturn:
        """Raise the sentence about this file, and about one row of the table."""
        number = None if place is None else self.row_number(place)
        bad_file(self.path, should, found, remedy, number)

    def _row_numbers(self) -> Iterator[int]:
        if self.format == "conll":
            yield from sentence_rows(self.path, self.byte_limit)
        elif self.format in ("csv", "tsv"):
            yield from CsvFile(self.path, self.byte_limit, []).row_numbers()
        elif self.format in ("jsonl", "txt"):
            with CheckedStream(self.path, byte_limit=self.byte_limit) as stream:
                yield from (n for n, line in enumerate(stream.lines(), 1) if line.strip())
