"""A file, or columns in memory, as cells with names, and their numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._table import Floats
from taskmix.tasks import frame_table, is_frame, read_rows

ARGUMENTS = ("ignore", "run_column", "size_column", "metrics_columns")  # that remedies may name
NOTHING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})  # cells that hold no number
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmbgt])", re.IGNORECASE)
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}


@dataclass(frozen=True, eq=False)
class Sheet:
    """Cells by column, as they were written."""

    name: str  # of the file, as sentences say it
    columns: dict[str, list[Any]]
    rows: Any = None  # `tasks.Rows`, which knows the rows of a file; None in memory

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int) -> str:
        """`ratios.csv, row 7`, as an editor counts."""
        number = row + 1 if self.rows is None else self.rows.row_number(row)
        return f"{self.name}, row {number}"

    def refuse(self, should: str, found: str, remedy: str, row: int | None = None) -> NoReturn:
        """Raises the sentence about this sheet."""
        where = self.name if row is None else self.place(row)
        raise InputError(f"{should} Found {found} in {where}. {remedy}", arguments=ARGUMENTS)

    def holds_numbers(self, column: str) -> bool:
        """Whether any cell is a number: a column of words alone is a remark, not a mistake."""
        return any(_number(cell) is not None for cell in self.columns[column])

    def numbers(self, column: str, what: str) -> Floats:
        """The column's numbers, NaN where there is none; a word among them is refused."""
        found = np.full(len(self), np.nan)
        for row, cell in enumerate(self.columns[column]):
            if cell is None or str(cell).strip().lower() in NOTHING:
                continue
            value = _number(cell)
            if value is None:
                self.refuse(
                    f"Column `{column}` should be {what}, a number in each row.",
                    f"{str(cell)[:40]!r}",
                    "Mend the cell, or leave the column out with `ignore`.",
                    row,
                )
            found[row] = value
        return found


def read_sheet(source: Any, what: str) -> Sheet:
    """A file, a frame or a mapping of columns."""
    if isinstance(source, str | Path):
        path = Path(source)
        rows = read_rows(path)
        sheet = Sheet(path.name, _cells(rows.table), rows)
    elif is_frame(source):
        sheet = Sheet(what, _cells(frame_table(source)))
    else:
        raise InputError(
            f"{what[:1].upper()}{what[1:]} should be a file or a table with named columns. Found "
            f"{type(source).__name__}. Give a path, a frame or a mapping of columns."
        )
    if not len(sheet):
        sheet.refuse("There should be a row for each run.", "no rows", "Check the file.")
    return sheet


def pick(names: Sequence[str], wanted: Sequence[str], sheet: Sheet, argument: str) -> list[str]:
    """The columns that were named, where `loss_*` stands for all that begin so."""
    from fnmatch import fnmatchcase

    found: list[str] = []
    for pattern in wanted:
        here = (
            [pattern]
            if pattern in names
            else [name for name in names if fnmatchcase(name, pattern)]
        )
        if not here:
            raise InputError(
                f"`{argument}` should name columns of {sheet.name}. Found `{pattern}`, and the columns "
                f"{', '.join(names[:12])}{' ...' if len(names) > 12 else ''}. Check the spelling.",
                arguments=(argument,),
            )
        found += [name for name in here if name not in found]
    return found


def size_of(cell: Any) -> float | None:
    """`70M` or 7e7 as a number of parameters; None where it is none."""
    match = _SIZE.fullmatch(str(cell).strip())
    if match is not None:
        return float(match[1]) * _UNITS[match[2].lower()]
    value = _number(cell)
    return value if value is not None and np.isfinite(value) and value > 0 else None


def looks_like_sizes(cells: Sequence[Any]) -> bool:
    """Whether every cell says a size with its unit: `1M`, `60M`."""
    return all(_SIZE.fullmatch(str(cell).strip()) is not None for cell in cells)


def _cells(table: Any) -> dict[str, list[Any]]:
    return {
        str(name): table.column(place).to_pylist() for place, name in enumerate(table.column_names)
    }


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None
