"""Comma-separated records with a header, read by Arrow; by Python only to find a bad row."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv

from taskmix.tasks._formats._streams import CheckedStream, arrow_file
from taskmix.tasks._formats._words import bad_file

_BLOCK = 4 * 2**20
_COLUMN = 12_000  # bytes that Arrow takes for a column, however few rows it has
_CELL = 64  # bytes of a cell in Python


def read_csv(path: Path, byte_limit: int | None) -> pa.Table:
    """Every cell as text: whether a column holds numbers is decided over all files of a task."""
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        header = next((cells for _, cells in records(stream)), None)
    if header is None:
        return pa.table({})
    stream.allowance.check(_COLUMN * len(header))
    table = _read_with_arrow(path, byte_limit, len(header))
    if table is None or table.num_columns != len(header):
        if not _has_rows(path, byte_limit, len(header)):
            return pa.table({name: pa.array([], pa.string()) for name in header})
        bad_file(path, "A .csv file should have comma-separated cells.", "others", "Save it anew.")
    # A quote that is never closed swallows all that follows it, so it shows in the last row.
    if any("\n" in column[-1].as_py() for column in table.columns):
        with CheckedStream(path, byte_limit=byte_limit) as stream:
            deque(records(stream, strict=True), maxlen=0)
    return table.slice(1).rename_columns(header)


def records(stream: CheckedStream, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The row, as an editor shows it, where each record begins, and its cells.

    `strict` sees a quote that is never closed, and ends at other things that Arrow reads as meant.
    """
    usual = csv.field_size_limit(stream.allowance.line)  # of the whole process, so it is put back
    start = 1
    try:
        buffer = io.BufferedReader(stream, _BLOCK)
        with io.TextIOWrapper(buffer, encoding="utf-8", newline="") as text:
            reader = csv.reader(_bounded(text, stream), strict=strict)
            for cells in reader:
                if cells:  # a blank row is none
                    yield start, cells
                start = reader.line_num + 1
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


def _bounded(text: io.TextIOWrapper, stream: CheckedStream) -> Iterator[str]:
    """The lines, of which none has more cells than there is memory for."""
    for line in text:
        stream.allowance.check(_CELL * line.count(","))
        yield line


def _read_with_arrow(path: Path, byte_limit: int | None, width: int) -> pa.Table | None:
    """All rows with the header as the first, so that no column's type is guessed; None if not."""
    types = {f"f{place}": pa.string() for place in range(width)}
    for is_long in (False, True):
        with (
            CheckedStream(path, byte_limit=byte_limit) as stream,
            arrow_file(stream) as source,
        ):
            block = 2 * stream.allowance.line if is_long else _BLOCK
            options = arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=block)
            try:
                return arrow_csv.read_csv(
                    source,
                    read_options=options,
                    parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
                    convert_options=arrow_csv.ConvertOptions(column_types=types),
                )
            except pa.ArrowException as error:
                if stream.problem is not None:
                    raise stream.problem from None
                if "block" not in str(error):
                    return None
                # Otherwise a row may be longer than the block.
    return None


def _has_rows(path: Path, byte_limit: int | None, width: int) -> bool:
    """Whether anything follows the header; a row of another width gets its sentence."""
    last = 0
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        for number, cells in records(stream):
            if len(cells) != width:
                bad_file(
                    path,
                    "All rows of a .csv file should have as many cells as its header.",
                    f"{len(cells)} beside {width}",
                    "Correct that row; a cell with a comma in it needs quotes.",
                    number,
                )
            last += 1
    return last > 1
