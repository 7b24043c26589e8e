"""Data sets as people have them, as tasks.

Whatever has columns (a Hugging Face data set, an Arrow table, a list of mappings) is read as a file
of a task folder is. Pairs of an input and a target (any PyTorch `Dataset`, arrays `(X, y)`) are held
as they are for a model of one's own; a model of ours reads them where they are vectors or texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from taskmix.errors import InputError
from taskmix.tasks._held import HeldEncoding, held_tasks, tables_as_tasks
from taskmix.tasks._task import TaskSet

SPLITS = ("train", "dev", "test")
Pairs = tuple[Any, Any]  # inputs and targets, row by row


def gather_tasks(
    given: Mapping[str, Any], *, hold: bool, collate: Any = None, metric: str | None = None
) -> tuple[TaskSet, HeldEncoding | None]:
    """Tasks from `name -> (train, dev, test)`; with `hold`, pairs are left as they are.

    >>> train = (np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1]))
    >>> tasks, _ = gather_tasks({"first": (train, train)}, hold=False)
    >>> tasks["first"].sizes, tasks["first"].labels
    ({'train': 3, 'dev': 3}, ('0', '1'))
    """
    if not given:
        raise InputError("There should be at least one task. Found none.")
    tables: dict[str, dict[str, Any]] = {}
    pairs: dict[str, dict[str, Pairs]] = {}
    for name, parts in given.items():
        for split, part in _splits(name, parts).items():
            table = _table(part)
            if table is not None:
                tables.setdefault(name, {})[split] = table
            else:
                pairs.setdefault(name, {})[split] = _pairs(name, part)
    if tables and pairs:
        raise InputError(
            "All tasks should be given alike. Found columns for "
            f"`{next(iter(tables))}` and pairs of input and target for `{next(iter(pairs))}`."
        )
    if tables:
        return tables_as_tasks(tables, metric=metric), None
    if hold:
        return held_tasks(pairs, collate, metric=metric)
    return tables_as_tasks(
        {
            name: {split: _columns(name, *part) for split, part in parts.items()}
            for name, parts in pairs.items()
        },
        metric=metric,
    ), None


def _splits(name: str, parts: Any) -> dict[str, Any]:
    if isinstance(parts, Mapping):  # a Hugging Face `DatasetDict` is one, too
        found = dict(parts)
        if "dev" not in found and "validation" in found:
            found["dev"] = found.pop("validation")
    elif isinstance(parts, Sequence) and 2 <= len(parts) <= 3:
        found = dict(zip(SPLITS, parts, strict=False))
    else:
        found = {}
    if not {"train", "dev"} <= set(found):
        raise InputError(
            f"Task `{name}` should be (train, dev, test), or a mapping with these names. Found "
            f"{type(parts).__name__}. Ways of training are compared on dev; test may be left out."
        )
    return {split: found[split] for split in SPLITS if found.get(split) is not None}


def _table(part: Any) -> Any | None:
    """What has columns, as an Arrow table; None where it has none."""
    if isinstance(part, pa.Table):
        return part
    if hasattr(part, "column_names") and hasattr(part, "with_format"):  # Hugging Face
        return part.with_format("arrow")[:]
    if isinstance(part, list) and part and isinstance(part[0], Mapping):
        return pa.Table.from_pylist(part)
    return None


def _pairs(name: str, part: Any) -> Pairs:
    """Arrays `(X, y)`, or a data set that gives an input and a target for each row."""
    if isinstance(part, tuple) and len(part) == 2 and len(part[0]) == len(part[1]):
        return part
    try:
        items = [part[row] for row in range(len(part))]
        inputs, targets = [item[0] for item in items], [item[1] for item in items]
    except (TypeError, LookupError) as error:
        raise InputError(
            f"A data set of `{name}` should have a length and give (input, target) for each row. "
            f"Found {type(part).__name__} ({error})."
        ) from error
    return inputs, targets


def _columns(name: str, inputs: Any, targets: Any) -> Any:
    """Vectors as columns `x0`, `x1`, ..., texts as `text`."""
    labels = [each.item() if hasattr(each, "item") else each for each in targets]
    if len(inputs) and isinstance(inputs[0], str):
        return pa.table({"text": list(inputs), "label": labels})
    try:
        values = np.stack([np.asarray(row, dtype=np.float64) for row in inputs])
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Inputs of `{name}` should be texts or vectors of one length for a model of ours. Found "
            f"something else ({error}). Give a `model` that reads them."
        ) from error
    if values.ndim != 2:
        raise InputError(
            f"Inputs of `{name}` should be texts or vectors for a model of ours. Found arrays of "
            f"shape {values.shape[1:]}. Give a `model` that reads them."
        )
    columns = {f"x{place}": values[:, place] for place in range(values.shape[1])}
    return pa.table({**columns, "label": labels})
