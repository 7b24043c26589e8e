"""The type of a column's cells, and the same cells in the one type we use for it."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from taskmix.tasks._formats._readers import Rows

Family = Literal["number", "text", "truth", "list", "nothing", "other"]


def cell_family(kind: pa.DataType) -> Family:
    """What cells of that type are to a task."""
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_dictionary(kind):
        return cell_family(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return "list"
    if types.is_boolean(kind):
        return "truth"
    return "nothing" if types.is_null(kind) else "other"


def cells_of(part: Rows, name: str, *, as_text: bool = False) -> pa.ChunkedArray:
    """A column of one file as it was read."""
    names = part.table.column_names
    if name not in names:
        known = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        remedy = (
            "Add the column, or say which one is meant, in `task.toml` or as label or task column."
        )
        found = f"the columns {known or '(none)'}"
        if part.begins_with_data():
            found += ", which look like a row of data,"
            remedy = "Write a first row with the names of the columns."
        part.bad(f"There should be a column `{name}`.", found, remedy)
    reason = part.unusable.get(name) or (part.mixed.get(name) if as_text else None)
    if reason is not None:
        remedy = "Write all its values in the same way."
        part.bad(f"The column `{name}` should be of one type.", reason, remedy)
    return part.table.column(name)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in the one type we use for them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if cell_family(kind) == "text" and kind != pa.string():
        return column.cast(pa.string())
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return column.cast(pa.float64())
    if cell_family(kind) == "list":
        inner = kind.value_type
        plain = pa.string() if cell_family(inner) == "text" else inner
        return column.cast(pa.list_(plain))
    return column
