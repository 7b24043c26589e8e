"""Class numbers of Hugging Face data sets by the names that their features have for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def name_classes(table: pa.Table, features: Mapping[str, Any]) -> tuple[pa.Table, bool]:
    """The table with names in place of class numbers, and whether all of those are hidden (-1).

    A feature is an object of `datasets`, or what its JSON says of it.
    """
    hidden = False
    for column, feature in features.items():
        cells = table.column(column).combine_chunks()
        if names := _part(feature, "names"):
            hidden |= len(cells) > 0 and all(cell == -1 for cell in cells.unique().to_pylist())
            cells = _named(cells, names)
        elif names := _part(_part(feature, "feature"), "names"):  # of a list of classes
            missing = cells.is_null() if cells.null_count else None
            cells = pa.ListArray.from_arrays(
                cells.offsets, _named(cells.values, names), mask=missing
            )
        else:
            continue
        table = table.set_column(table.column_names.index(column), column, cells)
    return table, hidden


def _part(feature: Any, name: str) -> Any:
    if isinstance(feature, Mapping):
        return feature.get(name)
    return getattr(feature, name, None)


def _named(codes: pa.Array, names: Sequence[str]) -> pa.Array:
    """The name of each class; nothing for a class that is hidden or unknown."""
    if not pa.types.is_integer(codes.type):
        return codes
    places = codes.fill_null(-1).to_numpy(zero_copy_only=False)
    known = (places >= 0) & (places < len(names))
    return pa.array(names, pa.string()).take(pa.array(np.where(known, places, 0), mask=~known))
