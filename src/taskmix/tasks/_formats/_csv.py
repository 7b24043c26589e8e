"""Separated cells with a header, read by Arrow; by Python only to find a bad row, or to mend rows.

What spreadsheets leave behind is taken out, with a note: columns without a name, rows of empty cells,
empty cells beyond the header, and the header again in the middle of files that were put together.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from taskmix.errors import TaskFileError
from taskmix.tasks._formats._dialects import USUAL, Dialect, find_dialect, plain_numbers
from taskmix.tasks._formats._streams import CheckedStream, add_note, arrow_file
from taskmix.tasks._formats._words import bad_file

_BLOCK = 4 * 2**20
_HEAD = 2**16  # bytes from which the dialect is told
_COLUMN = 12_000  # bytes that Arrow takes for a column, however few rows it has
_CELL = 64  # bytes of a cell in Python
_QUOTE_BEGINS, _QUOTE_OPENS = '^"', '^"(.*[^"])?$'
_NEEDS_QUOTES = {
    ",": "a cell with a comma",
    ";": "a cell with a semicolon",
    "\t": "a cell with a tab",
    "|": "a cell with a vertical bar",
}


def read_csv(path: Path, byte_limit: int | None, remarks: list[str] | None = None) -> pa.Table:
    """Every cell as text: whether a column holds numbers is decided over all files of a task."""
    said: list[str] = [] if remarks is None else remarks
    file = CsvFile(path, byte_limit, said)
    table = file.read()
    for remark in file.dialect.remarks:
        add_note(said, remark)
    if table is None:
        return pa.table({name: pa.array([], pa.string()) for name in file.header})
    table = _without_idle_rows(_without_nameless(table, said), said)
    if len(set(table.column_names)) < table.num_columns:
        return table  # which gets a sentence
    return plain_numbers(table, lambda words: add_note(said, words))


class CsvFile:
    """A file of separated cells, and what its beginning says of it."""

    def __init__(self, path: Path, byte_limit: int | None, remarks: list[str]) -> None:
        self.path, self._byte_limit, self._remarks = path, byte_limit, remarks
        name = path.name.lower().removesuffix(".gz")
        self._usual = USUAL["tsv" if name.endswith((".tsv", ".tab")) else "csv"]
        self._stream: CheckedStream | None = self._opened()  # until somebody has read it
        self.allowance = self._stream.allowance
        head = self._stream.peek(_HEAD)
        self.dialect = find_dialect(
            head.decode("utf-8", "ignore"), self._usual, is_whole=len(head) < _HEAD
        )
        self.header = self._first_record(self.dialect)

    def _opened(self) -> CheckedStream:
        return CheckedStream(self.path, byte_limit=self._byte_limit, remarks=self._remarks)

    def _taken(self) -> CheckedStream:
        """The file from its beginning; opened again where it was read before."""
        stream, self._stream = self._stream or self._opened(), None
        return stream

    def _first_record(self, dialect: Dialect) -> list[str]:
        """The names of the columns, which may be more than the first bytes hold."""
        stream, size = self._stream or self._opened(), _HEAD
        while True:
            head = stream.peek(size)
            lines = io.StringIO(head.decode("utf-8", "ignore"), newline="").readlines()
            is_whole = len(head) < size or size > self.allowance.line
            reader = _reader(islice(lines, dialect.skipped, None), dialect)
            try:
                with _long_cells(self.allowance.line):
                    header: list[str] = next((cells for cells in reader if cells), [])
            except csv.Error:
                header = []
            if is_whole or reader.line_num + dialect.skipped < len(lines) - 1:
                self.allowance.check(_COLUMN * len(header))
                return header
            self.allowance.check(_CELL * head.count(dialect.separator.encode()))
            size *= 8

    def read(self) -> pa.Table | None:
        """The rows below the header; None where there are none."""
        if not self.header:
            return None
        if self.dialect.separator == "\t":
            return self._read_tabs()
        return self._read(self._with_arrow(self.dialect))

    def _read(self, table: pa.Table | None) -> pa.Table | None:
        if table is None or table.num_columns != len(self.header):
            return _read_with_python(self, self._remarks)
        # A quote that is never closed swallows all that follows it, so it shows in the last row.
        if any("\n" in column[-1].as_py() for column in table.columns):
            deque(self.records(strict=True), maxlen=0)
        return table.slice(1).rename_columns(self.header)

    def _read_tabs(self) -> pa.Table | None:
        """Text between tabs is often written without quoting; a lone quote would swallow rows."""
        plain = replace(self.dialect, has_quotes=False)
        width = len(self._first_record(plain))
        table = self._with_arrow(plain)
        is_even = table is not None and table.num_columns == width
        if is_even and not _any_cell(table, _QUOTE_BEGINS):
            return self._read(table)
        if is_even and _any_cell(table, _QUOTE_OPENS) and not self._is_quoted_well():
            words = "has quotes that do not close, so quotes were read as letters"
            self.dialect = replace(plain, remarks=(*plain.remarks, words))
            self.header = self._first_record(plain)
            return self._read(table)
        return self._read(self._with_arrow(self.dialect))

    def _is_quoted_well(self) -> bool:
        """Whether all rows are as wide, and every quote closes where a cell ends."""
        try:
            return len({len(cells) for _, cells in self._parsed(strict=True)}) == 1
        except (csv.Error, TaskFileError):
            return False

    def _with_arrow(self, dialect: Dialect) -> pa.Table | None:
        """All rows with the header as the first, so that no column's type is guessed; None if not."""
        types = {f"f{place}": pa.string() for place in range(len(self._first_record(dialect)))}
        for is_long in (False, True):
            with self._taken() as stream, arrow_file(stream) as source:
                block = 2 * stream.allowance.line if is_long else _BLOCK
                try:
                    return arrow_csv.read_csv(
                        source,
                        read_options=arrow_csv.ReadOptions(
                            autogenerate_column_names=True,
                            block_size=block,
                            skip_rows=dialect.skipped,
                        ),
                        parse_options=arrow_csv.ParseOptions(
                            delimiter=dialect.separator,
                            quote_char='"' if dialect.has_quotes else False,
                            newlines_in_values=dialect.has_quotes,
                        ),
                        convert_options=arrow_csv.ConvertOptions(
                            column_types=types,
                            check_utf8=False,  # the stream did
                        ),
                    )
                except pa.ArrowException as error:
                    if stream.problem is not None:
                        raise stream.problem from None
                    if "block" not in str(error):
                        return None
                    # Otherwise a row may be longer than the block.
        return None

    def records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """The row, as an editor shows it, where each record begins, and its cells; the header first.

        `strict` sees a quote that is never closed, and ends at other things that Arrow reads as meant.
        """
        try:
            yield from self._parsed(strict=strict)
        except csv.Error:
            if not strict:
                raise

    def _parsed(self, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
        start = 1 + self.dialect.skipped
        with self._taken() as stream, _long_cells(self.allowance.line):
            buffer = io.BufferedReader(stream, _BLOCK)
            with io.TextIOWrapper(buffer, encoding="utf-8", newline="") as text:
                lines = islice(self._bounded(text), self.dialect.skipped, None)
                reader = _reader(lines, self.dialect, strict=strict)
                try:
                    for cells in reader:
                        if cells:  # a blank row is none
                            yield start, cells
                        start = reader.line_num + 1 + self.dialect.skipped
                except csv.Error as error:
                    if "unexpected end" not in str(error) and "larger than" not in str(error):
                        raise
                    should = (
                        f"A quote that opens should close, within {self.allowance.line:,} bytes."
                    )
                    remedy = "Close it or take it out."
                    bad_file(self.path, should, "one that does not", remedy, start)

    def _bounded(self, text: io.TextIOWrapper) -> Iterator[str]:
        """The lines, of which none has more cells than there is memory for."""
        for line in text:
            self.allowance.check(_CELL * line.count(self.dialect.separator))
            yield line

    def row_numbers(self) -> Iterator[int]:
        """The row of each row of the table."""
        header = self.header
        named = [place for place, name in enumerate(header) if name.strip()] or range(len(header))
        for number, cells in islice(self.records(), 1, None):
            if any(cells[place].strip() for place in named) and any(
                cells[place] != header[place] for place in named
            ):
                yield number


def _reader(lines: Iterable[str], dialect: Dialect, *, strict: bool = False) -> Any:
    return csv.reader(
        lines,
        delimiter=dialect.separator,
        quoting=csv.QUOTE_MINIMAL if dialect.has_quotes else csv.QUOTE_NONE,
        strict=strict,
    )


@contextmanager
def _long_cells(limit: int) -> Iterator[None]:
    """The limit of Python's reader is that of the whole process, so it is put back."""
    usual = csv.field_size_limit(limit)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _any_cell(table: pa.Table, pattern: str) -> bool:
    """Whether one of the cells is like that."""
    return any(
        pc.any(pc.match_substring_regex(column, pattern)).as_py() for column in table.columns
    )


def _read_with_python(file: CsvFile, remarks: list[str]) -> pa.Table | None:
    """Rows that are wider than the header by empty cells only; others get their sentence."""
    width = len(file.header)
    columns: list[list[str]] = [[] for _ in range(width)]
    wider, first, taken = 0, 0, 0
    for number, cells in islice(file.records(), 1, None):
        if len(cells) < width and "\n" in cells[-1]:  # perhaps a quote that swallowed what follows
            deque(file.records(strict=True), maxlen=0)
        if len(cells) < width or any(cell.strip() for cell in cells[width:]):
            bad_file(
                file.path,
                "All rows of a .csv file should have as many cells as its header.",
                f"{len(cells)} beside {width}",
                f"Correct that row; {_NEEDS_QUOTES[file.dialect.separator]} in it needs quotes.",
                number,
            )
        if len(cells) > width:
            wider, first = wider + 1, first or number
        taken += sum(map(len, cells)) + _CELL * width
        file.allowance.check(taken)
        for column, cell in zip(columns, cells, strict=False):
            column.append(cell)
    if wider:
        rows = "1 row" if wider == 1 else f"{wider} rows"
        add_note(
            remarks,
            f"has {rows} with empty cells beyond the header, which were left out; "
            f"the first is line {first}",
        )
    if not columns[0]:
        return None
    return pa.table([pa.array(column, pa.string()) for column in columns], names=file.header)


def _without_nameless(table: pa.Table, remarks: list[str]) -> pa.Table:
    """The columns that have a name; row numbers of pandas and spreadsheets' empty columns have none."""
    named = [place for place, name in enumerate(table.column_names) if name.strip()]
    nameless = table.num_columns - len(named)
    if not nameless or not named:
        return table
    empty = sum(
        pc.all(pc.equal(pc.utf8_trim_whitespace(table.column(place)), "")).as_py() is not False
        for place in range(table.num_columns)
        if place not in named
    )
    if empty:
        several = "1 column" if empty == 1 else f"{empty} columns"
        add_note(remarks, f"has {several} without a name or a cell, left out")
    if nameless > empty:
        which = "a first column" if 0 not in named and nameless - empty == 1 else "a column"
        add_note(
            remarks,
            f"has {which} without a name, taken for numbers of rows and left out",
        )
    return table.select(named)


def _without_idle_rows(table: pa.Table, remarks: list[str]) -> pa.Table:
    """The rows that say anything: not those of empty cells, nor the header once more."""
    first, name = table.column(0), table.column_names[0]
    if not pc.any(pc.is_in(first, value_set=pa.array(["", name]))).as_py():
        return table
    names = table.column_names
    empty = _all_equal(table, [""] * len(names))
    again = _all_equal(table, names)
    for rows, one, several in (
        (empty, "a row without any value", "rows without any value"),
        (again, "a row that repeats the header", "rows that repeat the header"),
    ):
        if count := pc.sum(rows).as_py():
            words = one if count == 1 else f"{count} {several}"
            add_note(remarks, f"has {words}, left out")
    return table.filter(pc.invert(pc.or_(empty, again)))


def _all_equal(table: pa.Table, words: Sequence[str]) -> pa.ChunkedArray:
    """[row], whether all its cells are these."""
    whole = None
    for column, word in zip(table.columns, words, strict=True):
        one = pc.equal(pc.utf8_trim_whitespace(column) if not word else column, word)
        whole = one if whole is None else pc.and_(whole, one)
    return whole
