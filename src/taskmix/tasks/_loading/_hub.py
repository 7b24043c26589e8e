"""Data sets of the Hugging Face hub, by name, and those that `save_to_disk` has left in a folder.

Their splits are named as files are (`validation` is `dev`), class numbers become the class names, and
a split whose classes are hidden (-1 in every row, as in the test sets of GLUE) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from taskmix.errors import InputError
from taskmix.extras import load
from taskmix.tasks._formats import Rows, quoted
from taskmix.tasks._frames import Given, rows_of, saved_splits
from taskmix.tasks._loading._build import Origin
from taskmix.tasks._loading._in_memory import WHOLE
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
    given = {key: each for key, each in splits.items() if key in name_splits(splits)}
    return _named_splits(
        name,
        tuple(splits),
        {key: rows for key, each in given.items() if (rows := rows_of(each, f"{name}/{key}"))},
        notes,
    )


def saved_origin(folder: Path, name: str, notes: Notes, byte_limit: int | None = None) -> Origin:
    """The folder of a saved `Dataset`, to be divided, or of a saved `DatasetDict`."""
    found = saved_splits(folder, byte_limit=byte_limit)
    if WHOLE in found:
        return Origin(name=name, parts={WHOLE: found[WHOLE].rows}, whole=True, is_only=True)
    parts = _named_splits(str(folder), tuple(found), found, notes)
    return Origin(name=name, parts=parts, is_only=True)


def _named_splits(
    name: str, known: tuple[str, ...], found: Mapping[str, Given], notes: Notes
) -> dict[str, Rows]:
    parts: dict[str, Rows] = {}
    for key, split in name_splits(known).items():
        if found[key].hidden:
            notes.add(f"the split `{key}` of {name} was left out, because its labels are hidden")
        else:
            parts[split] = replace(found[key].rows, format="hub")
    if not parts:
        raise InputError(
            f"`{name}` should have a split named train, dev, validation or test. Found "
            f"{', '.join(map(str, known)) or 'none'}. Load it yourself and write the splits to files."
        )
    return {split: parts[split] for split in order_splits(parts)}
