"""Columns of Python and of NumPy as Arrow has them: NaN is nothing, and a cell is a plain value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._formats import table_of_values

Column = tuple[pa.ChunkedArray, str | None, str | None]  # why it is unusable, or text of a mixture


def column_of(values: Any) -> Column:
    """One column, whatever holds it; of cells of several kinds also which, and in which rows."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return without_nan(values), None, None
    try:
        if isinstance(values, np.ndarray) and values.ndim > 1:
            values = list(values)
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        cells = [plain_cell(cell) for cell in values]
        table, unusable, mixed = table_of_values({"": cells}, range(1, len(cells) + 1))
        return table.column(""), unusable.get(""), mixed.get("")
    return without_nan(found), None, None


def without_nan(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    """The column with nothing where it says NaN (a frame has both for a missing cell), text as text."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind = chunked.type
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        # Categories of polars, which Arrow can neither cast nor compare.
        words = [chunk.dictionary.cast(pa.string()).take(chunk.indices) for chunk in chunked.chunks]
        return pa.chunked_array(words, pa.string())
    if pa.types.is_string_view(kind):
        return chunked.cast(pa.string())
    if pa.types.is_floating(kind):
        is_nan = pc.is_nan(chunked)
        if pc.any(is_nan).as_py():
            return pc.if_else(is_nan, pa.scalar(None, kind), chunked)
    return chunked


def plain_cell(cell: Any) -> Any:
    """A value that JSON could have, or as it is."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    elif hasattr(cell, "tolist") and hasattr(cell, "shape"):  # an array, or a tensor
        cell = cell.tolist()
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(cell, float) and cell != cell:
        return None
    if isinstance(cell, Mapping):
        return {str(key): plain_cell(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [plain_cell(each) for each in cell]
    return cell


def columns_of_rows(rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
    """The columns of rows that are mappings; a key that a row does not have is a missing cell."""
    names = dict.fromkeys(key for row in rows for key in row)
    return {str(name): [row.get(name) for row in rows] for name in names}
