"""Numbers as half of the world writes them: `1,5` for one and a half, `1.234,50` or `1,234.50`.

Whether a comma is a decimal point or parts thousands is told by cells that can be only one of the two,
in any column of the file: `1,5` and `1.234,5` have decimal commas, `1,234,567` and `1,234.5` have
thousands. Where all cells look like `1,234` nobody can tell; the column stays text, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._formats._numbers import NUMERIC_SHARE, trimmed_cells
from taskmix.tasks._formats._words import quoted

_SAMPLED = 200  # cells, evenly over the rows, that tell most columns of text apart
_PLAIN = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_DECIMAL_COMMA = r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?"
_THOUSANDS = r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"
_ANY = f"^({_PLAIN}|{_DECIMAL_COMMA}|{_THOUSANDS})$"

Meaning = Literal["decimal", "thousands"]


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
