"""How a file of separated cells is written: what separates them, and what comes before the header.

Commas are usual in `.csv` and tabs in `.tsv`; spreadsheets of half the world write semicolons. The first
rows tell: the separator that cuts the header and the rows below it into equally many cells, two or more.
The usual one wins where it does so. Excel may say it itself, in a first row `sep=;`.

Half of the world writes `1,5` for one and a half, and `1.234,50` or `1,234.50`. Whether a comma is a
decimal point or parts thousands is told by cells that can be only one of the two, in any column of the
file: `1,5` and `1.234,5` have decimal commas, `1,234,567` and `1,234.5` have thousands. Where all cells
look like `1,234` nobody can tell; the column stays text, and a note says so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._formats._values import NUMERIC_SHARE, trimmed_cells
from taskmix.tasks._formats._words import quoted

USUAL = {"csv": ",", "tsv": "\t"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SAID = re.compile(r'"?sep=(.)"?[;,\t|]*\s*$', re.IGNORECASE)
_ROWS_LOOKED_AT = 50
_SAMPLED = 200  # cells, evenly over the rows, that tell most columns of text apart
_PLAIN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_DECIMAL_COMMA = r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?"
_THOUSANDS = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"
_ANY = f"^({_PLAIN}|{_DECIMAL_COMMA}|{_THOUSANDS})$"

Meaning = Literal["decimal", "thousands"]


@dataclass(frozen=True)
class Dialect:
    """What has to be known to cut a file into cells."""

    separator: str = ","
    skipped: int = 0  # lines before the header
    has_quotes: bool = True  # whether a quote at the start of a cell is one, or a letter as others
    remarks: tuple[str, ...] = ()


def find_dialect(head: str, usual: str, *, is_whole: bool) -> Dialect:
    """The dialect, by the beginning of a file; `is_whole` where the head is all of it."""
    lines = head.splitlines(keepends=True)
    if not is_whole:
        lines = lines[:-1]
    if lines and (said := _SAID.fullmatch(lines[0].rstrip("\r\n"))) and said[1] in SEPARATORS:
        return Dialect(said[1], skipped=1, remarks=_remarks(said[1], usual))
    skipped = _comments(lines, usual)
    separator = _separator(lines[skipped:], usual)
    remarks = _remarks(separator, usual)
    if skipped:
        some = (
            "a comment (`#`), which was"
            if skipped == 1
            else f"{skipped} comments (`#`), which were"
        )
        remarks += (f"begins with {some} passed over",)
    return Dialect(separator, skipped, remarks=remarks)


def _remarks(separator: str, usual: str) -> tuple[str, ...]:
    if separator == usual:
        return ()
    return (f"is separated by {SEPARATORS[separator]}, not {SEPARATORS[usual]}",)


def _comments(lines: list[str], usual: str) -> int:
    """How many lines that begin with `#` come before the header; one that is cut as the next is it."""
    count = 0
    while count < len(lines) and lines[count].startswith("#"):
        count += 1
    if not 0 < count < len(lines):
        return 0
    separator = _separator(lines[count:], usual)
    width = lines[count].count(separator)
    return count if width and all(line.count(separator) != width for line in lines[:count]) else 0


def _separator(lines: list[str], usual: str) -> str:
    widths = {separator: _widths(lines, separator) for separator in SEPARATORS}
    header = {separator: found[0] for separator, found in widths.items() if found}
    even = {
        each: header[each] for each in header if header[each] > 1 and len(set(widths[each])) == 1
    }
    if usual in even or (not even and header.get(usual, 1) > 1):
        return usual
    # Where rows are not all as wide, the sentence about them should count the right cells.
    several = even or {each: width for each, width in header.items() if width > 1}
    return max(several, key=lambda each: several[each]) if several else usual


def _widths(lines: list[str], separator: str) -> list[int]:
    """Cells of each of the first rows; what Python's reader cannot cut has none."""
    try:
        rows = list(
            islice((r for r in csv.reader(lines, delimiter=separator) if r), _ROWS_LOOKED_AT)
        )
    except csv.Error:
        return []
    # Rows that were cut by the end of the head are gone; empty cells at the end may be missing.
    return [len(row) for row in rows]


def plain_numbers(table: pa.Table, note: Callable[[str], None]) -> pa.Table:
    """The table with commas taken out of its numbers."""
    columns = {name: _with_commas(table, name) for name in table.column_names}
    found = {name: cells for name, cells in columns.items() if cells is not None}
    if not found:
        return table
    evidence = {meaning for cells in found.values() if (meaning := _told_by(cells)) is not None}
    for name, cells in found.items():
        meaning = _told_by(cells) or (next(iter(evidence)) if len(evidence) == 1 else None)
        example = cells.filter(pc.match_substring(cells, ","))[0].as_py()
        if meaning is None:
            note(
                f"has cells such as {quoted(example)} in the column `{name}`, which may be a decimal "
                "comma or a thousand: the column was read as text; write them with a point or without"
            )
            continue
        column = table.column(name)
        if meaning == "decimal":
            plain = pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")
            column = pc.if_else(
                pc.match_substring(column, ","), plain, _without_points(column, cells)
            )
            words = "decimal commas"
        else:
            column = pc.replace_substring(column, ",", "")
            words = "commas between thousands"
        note(f"has {words} in the column `{name}` (such as {quoted(example)})")
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _without_points(column: pa.ChunkedArray, cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cells without a comma beside decimal commas: `1.000` is a thousand there."""
    if not pc.any(pc.match_substring_regex(cells, r"\.\d{3}(\.|,|$)")).as_py():
        return column
    parts = pc.match_substring_regex(column, r"^\s*[+-]?\d{1,3}(\.\d{3})+\s*$")
    return pc.if_else(parts, pc.replace_substring(column, ".", ""), column)


def _with_commas(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    """The cells of a column that is one of numbers if commas may stand in them, and some do."""
    column = table.column(name)
    last = max(len(column) - 1, 0)
    places = np.unique(np.linspace(0, last, min(_SAMPLED, len(column))).astype(np.int64))
    sample = trimmed_cells(column.take(pa.array(places))).drop_null()
    if _share(sample) < NUMERIC_SHARE / 2:  # most columns of words end here
        return None
    if not pc.any(pc.match_substring(column, ",")).as_py():
        return None
    cells = trimmed_cells(column).drop_null()
    return cells if len(cells) and _share(cells) >= NUMERIC_SHARE else None


def _share(cells: pa.ChunkedArray) -> float:
    if not len(cells):
        return 0.0
    return float(pc.sum(pc.match_substring_regex(cells, _ANY)).as_py() or 0) / len(cells)


def _told_by(cells: pa.ChunkedArray) -> Meaning | None:
    """What commas of a column mean, if a cell can be read in one way only."""
    commas = cells.filter(pc.match_substring(cells, ","))
    thousands = pc.match_substring_regex(commas, f"^{_THOUSANDS}$")
    decimal = pc.match_substring_regex(commas, f"^{_DECIMAL_COMMA}$")
    only_decimal = pc.any(pc.and_(decimal, pc.invert(thousands))).as_py()
    only_thousands = pc.any(pc.and_(thousands, pc.invert(decimal))).as_py()
    if only_decimal == only_thousands:
        return None
    return "decimal" if only_decimal else "thousands"
