"""Pairs of an input and a target: arrays `(X, y)`, or a data set of PyTorch that gives both by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from taskmix.errors import InputError
from taskmix.tasks._frames._tables import column_of, is_stream

Pairs = tuple[Any, Any]  # inputs and targets, row by row


def are_pairs(given: Any) -> bool:
    """Whether it is `(X, y)` or a data set with a length and rows; not a tuple of such."""
    if isinstance(given, tuple):
        return len(given) == 2 and _is_flat(given[1])
    has_rows = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    return has_rows and not isinstance(given, str | bytes | list | dict)


def _is_flat(targets: Any) -> bool:
    """Whether it has one value for each row: such are targets, and no data set."""
    shape = getattr(targets, "shape", None)
    if shape is not None:
        return len(shape) == 1
    if not isinstance(targets, list) or not targets:
        return False
    return isinstance(targets[0], str | bool | int | float | np.generic) or (
        getattr(targets[0], "shape", None) == ()
    )


def pairs_of(name: str, given: Any) -> Pairs:
    """Inputs and targets; a sentence where there are none for each row."""
    if isinstance(given, tuple) and len(given) == 2 and len(given[0]) == len(given[1]):
        return given
    if isinstance(given, tuple) and are_pairs(given):
        raise InputError(
            f"`{name}` should have a target for each row. Found {len(given[0])} rows and "
            f"{len(given[1])} targets."
        )
    try:
        items = [given[row] for row in range(len(given))]
        # The letters of a text and the cells of an array are no input with a target.
        odd = next((item for item in items if not isinstance(item, tuple | list)), None)
        if odd is not None:
            raise TypeError(f"a row is of type {type(odd).__name__}")
        inputs, targets = [item[0] for item in items], [item[1] for item in items]
    except (TypeError, LookupError) as error:
        why = "a stream" if is_stream(given) else error
        raise InputError(
            f"A data set of `{name}` should have a length and give (input, target) for each row. "
            f"Found {type(given).__name__} ({why})."
        ) from error
    return inputs, targets


def columns_of_pairs(name: str, inputs: Any, targets: Any = None) -> dict[str, Any]:
    """Vectors as columns `x0`, `x1`, ..., texts as `text`; the targets, if there are any, `label`."""
    label = {} if targets is None else {"label": column_of(list(targets))[0]}
    if len(inputs) and isinstance(inputs[0], str):
        return {"text": list(inputs), **label}
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
    columns = {f"x{place}": pa.array(values[:, place]) for place in range(values.shape[1])}
    return {**columns, **label}
