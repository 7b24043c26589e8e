"""Separated cells with a header, read by Arrow; by Python only to find a bad row, or to mend rows.

What spreadsheets leave behind is taken out, with a note: columns without a name, rows of empty cells,
empty cells beyond the header, and the header again in the middle of files that were put together.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from taskmix.tasks._formats._dialects import USUAL, Dialect, find_dialect, plain_numbers
from taskmix.tasks._formats._streams import CheckedStream, add_note, arrow_file
from taskmix.tasks._formats._words import bad_file

_BLOCK = 4 * 2**20
_HEAD = 2**16  # bytes from which the dialect is told
_COLUMN = 12_000  # bytes that Arrow takes for a column, however few rows it has
_CELL = 64  # bytes of a cell in Python
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
    if not file.header:
        return pa.table({})
    for remark in file.dialect.remarks:
        add_note(said, remark)
    table = _read_table(file)
    if table is None:
        return pa.table({name: pa.array([], pa.string()) for name in file.header})
    table = _without_idle_rows(_without_nameless(table, file), file)
    if len(set(table.column_names)) < table.num_columns:
        return table  # which gets a sentence
    return plain_numbers(table, lambda words: add_note(said, words))


@dataclass(frozen=True)
class CsvFile:
    """A file of separated cells, and what its beginning says of it."""

    path: Path
    byte_limit: int | None
    remarks: list[str]

    @property
    def usual(self) -> str:
        name = self.path.name.lower().removesuffix(".gz")
        return USUAL["tsv" if name.endswith((".tsv", ".tab")) else "csv"]

    @cached_property
    def dialect(self) -> Dialect:
        with self.stream() as stream:
            data = stream.read(_HEAD)
            is_whole = len(data) < _HEAD
        dialect = find_dialect(data.decode("utf-8", "ignore"), self.usual, is_whole=is_whole)
        if dialect.separator == "\t" and self._has_quotes_as_letters(dialect):
            words = "has quotes that do not close, so quotes were read as letters"
            return replace(dialect, has_quotes=False, remarks=(*dialect.remarks, words))
        return dialect

    @cached_property
    def header(self) -> list[str]:
        header = next((cells for _, cells in self.records()), [])
        with self.stream() as stream:
            stream.allowance.check(_COLUMN * len(header))
        return header

    def stream(self) -> CheckedStream:
        return CheckedStream(self.path, byte_limit=self.byte_limit, remarks=self.remarks)

    def _has_quotes_as_letters(self, dialect: Dialect) -> bool:
        """Whether a cell of a file with tabs begins with a quote that does not end it.

        Text between tabs is often written without quoting; a lone quote would swallow rows.
        """
        with self.stream() as stream:
            if not any(b'"' in block for block in iter(lambda: stream.read(_BLOCK), b"")):
                return False
        widths: set[int] = set()
        is_open = False
        with self.stream() as stream:
            for _, cells in records(stream, replace(dialect, has_quotes=False)):
                widths.add(len(cells))
                is_open |= any(c[:1] == '"' and (len(c) < 2 or c[-1] != '"') for c in cells)
        return is_open and len(widths) == 1 and not self._is_quoted_well(dialect)

    def _is_quoted_well(self, dialect: Dialect) -> bool:
        """Whether all rows are as wide, and every quote closes where a cell ends."""
        with self.stream() as stream, io.TextIOWrapper(io.BufferedReader(stream), "utf-8") as text:
            lines = islice(_bounded(text, stream, dialect.separator), dialect.skipped, None)
            try:
                rows = csv.reader(lines, delimiter=dialect.separator, strict=True)
                return len({len(cells) for cells in rows if cells}) == 1
            except csv.Error:
                return False

    def records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """The row, as an editor shows it, where each record begins, and its cells; the header first."""
        with self.stream() as stream:
            yield from records(stream, self.dialect, strict=strict)

    def row_numbers(self) -> Iterator[int]:
        """The row of each row of the table."""
        header = self.header
        named = [place for place, name in enumerate(header) if name.strip()] or range(len(header))
        for number, cells in islice(self.records(), 1, None):
            if any(cells[place].strip() for place in named) and any(
                cells[place] != header[place] for place in named
            ):
                yield number


def records(
    stream: CheckedStream, dialect: Dialect, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The row, as an editor shows it, where each record begins, and its cells.

    `strict` sees a quote that is never closed, and ends at other things that Arrow reads as meant.
    """
    usual = csv.field_size_limit(stream.allowance.line)  # of the whole process, so it is put back
    start = 1 + dialect.skipped
    try:
        buffer = io.BufferedReader(stream, _BLOCK)
        with io.TextIOWrapper(buffer, encoding="utf-8", newline="") as text:
            lines = islice(_bounded(text, stream, dialect.separator), dialect.skipped, None)
            reader = csv.reader(
                lines,
                delimiter=dialect.separator,
                quoting=csv.QUOTE_MINIMAL if dialect.has_quotes else csv.QUOTE_NONE,
                strict=strict,
            )
            for cells in reader:
                if cells:  # a blank row is none
                    yield start, cells
                start = reader.line_num + 1 + dialect.skipped
    except csv.Error as error:
        if "unexpected end" in str(error) or "larger than" in str(error):
            bad_file(
                stream.path,
                f"A quote that opens should close, within {stream.allowance.line:,} bytes.",
                "one that does not",
                "Close it or take it out.",
                start,
            )
        if not strict:
            raise
    finally:
        csv.field_size_limit(usual)


def _bounded(text: io.TextIOWrapper, stream: CheckedStream, separator: str) -> Iterator[str]:
    """The lines, of which none has more cells than there is memory for."""
    for line in text:
        stream.allowance.check(_CELL * line.count(separator))
        yield line


def _read_table(file: CsvFile) -> pa.Table | None:
    """The rows below the header; None where there are none."""
    table = _read_with_arrow(file)
    if table is None or table.num_columns != len(file.header):
        return _read_with_python(file)
    # A quote that is never closed swallows all that follows it, so it shows in the last row.
    if any("\n" in column[-1].as_py() for column in table.columns):
        deque(file.records(strict=True), maxlen=0)
    return table.slice(1).rename_columns(file.header)


def _read_with_arrow(file: CsvFile) -> pa.Table | None:
    """All rows with the header as the first, so that no column's type is guessed; None if not."""
    types = {f"f{place}": pa.string() for place in range(len(file.header))}
    dialect = file.dialect
    for is_long in (False, True):
        with file.stream() as stream, arrow_file(stream) as source:
            block = 2 * stream.allowance.line if is_long else _BLOCK
            try:
                return arrow_csv.read_csv(
                    source,
                    read_options=arrow_csv.ReadOptions(
                        autogenerate_column_names=True, block_size=block, skip_rows=dialect.skipped
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


def _read_with_python(file: CsvFile) -> pa.Table | None:
    """Rows that are wider than the header by empty cells only; others get their sentence."""
    width = len(file.header)
    columns: list[list[str]] = [[] for _ in range(width)]
    wider, first, taken = 0, 0, 0
    with file.stream() as stream:
        bounds = stream.allowance
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
        bounds.check(taken)
        for column, cell in zip(columns, cells, strict=False):
            column.append(cell)
    if wider:
        rows = "1 row" if wider == 1 else f"{wider} rows"
        add_note(
            file.remarks,
            f"has {rows} with empty cells beyond the header, which were left out; "
            f"the first is line {first}",
        )
    if not columns[0]:
        return None
    return pa.table([pa.array(column, pa.string()) for column in columns], names=file.header)


def _without_nameless(table: pa.Table, file: CsvFile) -> pa.Table:
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
        add_note(file.remarks, f"has {several} without a name or a cell, left out")
    if nameless > empty:
        which = "a first column" if 0 not in named and nameless - empty == 1 else "a column"
        add_note(
            file.remarks,
            f"has {which} without a name, taken for numbers of rows and left out",
        )
    return table.select(named)


def _without_idle_rows(table: pa.Table, file: CsvFile) -> pa.Table:
    """The rows that say anything: not those of empty cells, nor the header once more."""
    first, name = table.column(0), table.column_names[0]
    if all(pc.index(first, pa.scalar(word)).as_py() < 0 for word in ("", name)):
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
            add_note(file.remarks, f"has {words}, left out")
    return table.filter(pc.invert(pc.or_(empty, again)))


def _all_equal(table: pa.Table, words: Sequence[str]) -> pa.ChunkedArray:
    """[row], whether all its cells are these."""
    whole = None
    for column, word in zip(table.columns, words, strict=True):
        one = pc.equal(pc.utf8_trim_whitespace(column) if not word else column, word)
        whole = one if whole is None else pc.and_(whole, one)
    return whole
