"""Comma-separated records with a header, read by Arrow; by Python only to find a bad row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv

from taskmix.tasks._streams import LINE_LIMIT, CheckedStream, bad_file

_BLOCK = 4 * 2**20


def read_csv(path: Path, byte_limit: int) -> pa.Table:
    """Every cell as text: whether a column holds numbers is decided over all files of a task."""
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        header = next((cells for _, cells in records(stream)), None)
    if header is None:
        return pa.table({})
    table = _read_with_arrow(path, byte_limit, len(header))
    if table is None or table.num_columns != len(header):
        if not _has_rows(path, byte_limit, len(header)):
            return pa.table({name: pa.array([], pa.string()) for name in header})
        bad_file(path, "A .csv file should have comma-separated cells.", "others", "Save it anew.")
    # A quote that is never closed swallows all that follows it, so it shows in the last row.
    if any("\n" in column[-1].as_py() for column in table.columns):
        _check_quotes(path, byte_limit)
    return table.slice(1).rename_columns(header)


def records(stream: CheckedStream, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The row, as an editor shows it, where each record begins, and its cells."""
    # The limit on a cell belongs to the whole process; ours is on a line, and checked already.
    usual = csv.field_size_limit(LINE_LIMIT)
    try:
        with io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline="") as text:
            reader = csv.reader(text, strict=strict)
            start = 1
            for cells in reader:
                if cells:  # a blank row is none
                    yield start, cells
                start = reader.line_num + 1
    finally:
        csv.field_size_limit(usual)


def _read_with_arrow(path: Path, byte_limit: int, width: int) -> pa.Table | None:
    """All rows with the header as the first, so that no column's type is guessed; None if not."""
    types = {f"f{place}": pa.string() for place in range(width)}
    for block in (_BLOCK, 2 * LINE_LIMIT):
        with CheckedStream(path, byte_limit=byte_limit) as stream:
            options = arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=block)
            try:
                return arrow_csv.read_csv(
                    pa.PythonFile(stream, mode="r"),
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


def _has_rows(path: Path, byte_limit: int, width: int) -> bool:
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


def _check_quotes(path: Path, byte_limit: int) -> None:
    start = 1
    try:
        with CheckedStream(path, byte_limit=byte_limit) as stream:
            for start, _ in records(stream):  # noqa: B007 - the last one is wanted
                pass
        with CheckedStream(path, byte_limit=byte_limit) as stream:
            for _ in records(stream, strict=True):
                pass
    except csv.Error as error:
        if "unexpected end" not in str(error):  # strict about things that Arrow reads as meant
            return
        should, remedy = "A quote that opens should close.", "Close it or take it out."
        bad_file(path, should, "one that is never closed", remedy, start)
