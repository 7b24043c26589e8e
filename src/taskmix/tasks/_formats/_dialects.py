"""How a file of separated cells is written: what separates them, and what comes before the header.

Commas are usual in `.csv` and tabs in `.tsv`; spreadsheets of half the world write semicolons. The first
rows tell: the separator that cuts the header and the rows below it into equally many cells, two or more.
The usual one wins where it does so. Excel may say it itself, in a first row `sep=;`.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from itertools import islice

USUAL = {"csv": ",", "tsv": "\t"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SAID = re.compile(r'"?sep=(.)"?[;,\t|]*\s*$', re.IGNORECASE)
_ROWS_LOOKED_AT = 50


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
