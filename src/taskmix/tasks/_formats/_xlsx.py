"""Excel workbooks, through openpyxl (extra `excel`), a row at a time.

The first sheet that has cells is read. Sheets called `train`, `dev` and `test` are splits; other sheets
with the same header are tasks; what else there is stays out, with a note. The header is the first row
that is not empty. Dates become text as ISO writes them, and Excel's errors (`#N/A`) are missing cells.

A workbook is an archive of XML. What its members say they become is checked first, and `zipfile` gives
no more of them. Cells, with those that a wide or long sheet has between its few, are counted on the way.
"""

from __future__ import annotations

import datetime
import io
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.extras import load
from taskmix.files import Allowance
from taskmix.tasks._formats._streams import add_note, allowance, file_bytes
from taskmix.tasks._formats._values import Reasons, table_of_values
from taskmix.tasks._formats._words import bad_file, quoted

_PURPOSE = "Reading .xlsx files"
_IN_PYTHON = 4  # times the XML of its texts, about
_CELL = 64  # bytes of a cell in Python
_SPLITS = frozenset({"train", "dev", "valid", "val", "validation", "test"})
_ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})


@dataclass
class _Sheet:
    name: str
    header: list[str]
    columns: list[list[Any]]
    numbers: list[int] = field(default_factory=list)  # of rows, as Excel shows them
    errors: int = 0


@dataclass(frozen=True, eq=False)
class Workbook:
    """The rows of the sheets that belong together."""

    table: pa.Table
    unusable: Reasons
    mixed: Reasons
    added: tuple[str, ...]
    numbers: NDArray[np.int64]


def read_xlsx(path: Path, byte_limit: int | None, remarks: list[str]) -> Workbook:
    """The sheets of a workbook that have the header of the first one."""
    openpyxl = load("openpyxl", purpose=_PURPOSE)
    bounds = allowance(path, byte_limit)
    data = file_bytes(path, byte_limit=byte_limit)
    should, remedy = "An .xlsx file should be a whole workbook.", "Save it again, or as .csv."
    try:
        _check_members(data, bounds)
        with warnings.catch_warnings():  # of styles and validations that it does not know
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            sheets = [_read_sheet(path, each, bounds) for each in book.worksheets]
            book.close()
    except (
        *(ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, SyntaxError),
        *(RuntimeError, RecursionError, OverflowError, AssertionError, NotImplementedError),
        *(zipfile.BadZipFile, zlib.error),
    ) as error:  # whatever openpyxl makes of XML that is none of Excel's
        found = f"that it cannot be read ({quoted(str(error) or type(error).__name__)})"
        bad_file(path, should, found, remedy)
    return _put_together(path, [sheet for sheet in sheets if sheet.header], remarks)


def _check_members(data: bytes, bounds: Allowance) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = [
            part.file_size * (_IN_PYTHON if "sharedStrings" in part.filename else 1)
            for part in archive.infolist()
        ]
    bounds.check(sum(sizes))


def _read_sheet(path: Path, sheet: Any, bounds: Allowance) -> _Sheet:
    found = _Sheet(str(sheet.title), [], [])
    places: list[int] = []
    for number, row in enumerate(_bounded(sheet, bounds), start=1):
        if all(cell is None or cell == "" for cell in row):
            continue
        if not places:
            places = [place for place, cell in enumerate(row) if _text(cell)]
            found.header = [_text(row[place]) for place in places]
            found.columns = [[] for _ in places]
            continue
        cells = [row[place] if place < len(row) else None for place in places]
        found.errors += sum(cell in _ERRORS for cell in cells if isinstance(cell, str))
        for column, cell in zip(found.columns, cells, strict=True):
            column.append(_plain(cell))
        found.numbers.append(number)
    for name in found.header:
        if found.header.count(name) > 1:
            should = "Column names should differ."
            bad_file(path, should, f"{quoted(name)} twice", "Rename one of the two columns.", 1)
    return found


def _bounded(sheet: Any, bounds: Allowance) -> Iterator[tuple[Any, ...]]:
    """The rows, while they do not take more than they may."""
    taken = 0
    for row in sheet.iter_rows(values_only=True):
        taken += _CELL * (len(row) + 1)
        taken += sum(len(cell) for cell in row if isinstance(cell, str))
        bounds.check(taken)
        yield row


def _text(cell: Any) -> str:
    """A cell of the header as a name; a number is one too."""
    return "" if cell is None else str(_plain(cell)).strip()


def _plain(cell: Any) -> Any:
    if isinstance(cell, datetime.datetime):
        has_time = cell.time() != datetime.time()
        return cell.isoformat(" ") if has_time else cell.date().isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds()
    if isinstance(cell, str):
        return None if cell in _ERRORS or not cell.strip() else cell
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return cell if isinstance(cell, bool | int | float) or cell is None else str(cell)


def _put_together(path: Path, sheets: list[_Sheet], remarks: list[str]) -> Workbook:
    if not sheets:
        return Workbook(pa.table({}), {}, {}, (), np.empty(0, dtype=np.int64))
    by_split = [sheet for sheet in sheets if sheet.name.strip().lower() in _SPLITS]
    first = (by_split or sheets)[0]
    alike = [sheet for sheet in by_split or sheets if set(sheet.header) == set(first.header)]
    others = [sheet.name for sheet in sheets if sheet not in alike]
    if others:
        shown = ", ".join(quoted(name) for name in others[:8])
        add_note(remarks, f"has other sheets, which were left alone: {shown}")
    name = "split" if by_split else "task"
    is_added = len(alike) > 1 and name not in first.header
    if is_added:
        shown = ", ".join(quoted(sheet.name) for sheet in alike[:8])
        add_note(remarks, f"has a sheet for each {name}: {shown}")
    if errors := sum(sheet.errors for sheet in alike):
        add_note(remarks, f"has {errors} cells with errors such as #N/A, which count as missing")
    columns: dict[str, list[Any]] = {
        each: [cell for sheet in alike for cell in sheet.columns[sheet.header.index(each)]]
        for each in first.header
    }
    numbers = [number for sheet in alike for number in sheet.numbers]
    if is_added:
        columns[name] = [sheet.name for sheet in alike for _ in sheet.numbers]
    table, unusable, mixed = table_of_values(columns, numbers)
    added = (name,) if is_added else ()
    return Workbook(table, unusable, mixed, added, np.array(numbers, dtype=np.int64))
