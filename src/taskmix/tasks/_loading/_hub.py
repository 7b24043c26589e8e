"""Data sets of the Hugging Face hub, by name, through the `datasets` package.

Their splits are named as files are (`validation` is `dev`), class numbers become the class names, and
a split whose classes are hidden (-1 in every row, as in the test sets of GLUE) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.tasks._formats import Rows, quoted
from taskmix.tasks._loading._notes import Notes
from taskmix.tasks._loading._splits import name_splits, order_splits


def hub_parts(name: str, config: str | None, notes: Notes) -> dict[str, Rows]:
    """The splits of a data set of the hub."""
    datasets = load("datasets", purpose="Loading tasks from the hub")
    try:
        found = datasets.load_dataset(name, config)
    except (OSError, ValueError, RuntimeError) as error:  # not there, no way there, another config
        raise InputError(
            f"`hf:{name}` should be a data set that the hub has and that can be reached. Found "
            f"{type(error).__name__}: {quoted(str(error), limit=200)}. Check the name, the "
            "configuration (`hf:name:config`) and the connection."
        ) from error
    return dataset_parts(f"hf:{name}" + (f":{config}" if config else ""), found, notes)


def dataset_parts(name: str, found: Any, notes: Notes) -> dict[str, Rows]:
    """The splits of a `DatasetDict`; a `Dataset` is one split, `train`."""
    splits: Mapping[str, Any] = found if isinstance(found, Mapping) else {"train": found}
    names = name_splits(splits)
    parts: dict[str, Rows] = {}
    for key, split in names.items():
        table, hidden = _table(splits[key])
        if hidden:
            notes.add(f"the split `{key}` of {name} was left out, because its labels are hidden")
        else:
            parts[split] = Rows(table, Path(f"{name}/{key}"), "hub")
    if not parts:
        raise InputError(
            f"`{name}` should have a split named train, dev, validation or test. Found "
            f"{', '.join(map(str, splits)) or 'none'}. Load it yourself and write the splits to files."
        )
    return {split: parts[split] for split in order_splits(parts)}


def _table(dataset: Any) -> tuple[pa.Table, bool]:
    """The rows with names in place of class numbers, and whether all of those are hidden."""
    table: pa.Table = dataset.with_format("arrow")[:]
    hidden = False
    for column, feature in dataset.features.items():
        cells = table.column(column).combine_chunks()
        inner = getattr(feature, "feature", None)  # of a list of classes
        if names := getattr(feature, "names", None):
            hidden |= len(cells) > 0 and all(cell == -1 for cell in cells.unique().to_pylist())
            cells = _named(cells, names)
        elif names := getattr(inner, "names", None):
            cells = pa.ListArray.from_arrays(cells.offsets, _named(cells.flatten(), names))
        table = table.set_column(table.column_names.index(column), column, cells)
    return table, hidden


def _named(codes: pa.Array, names: list[str]) -> pa.Array:
    """The name of each class; nothing for a class that is hidden or unknown."""
    places = codes.fill_null(-1).to_numpy(zero_copy_only=False)
    known = (places >= 0) & (places < len(names))
    return pa.array(names, pa.string()).take(pa.array(np.where(known, places, 0), mask=~known))
