"""Rows as an estimator is given them: arrays, texts or a frame, with a task and a target for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.tasks import frame_table, is_frame, rows_by_task

ONLY = "task"  # the name of the task where there is one
# Columns beside the inputs: a frame should have none of these names.
TARGET, TASK = "target of the row", "task of the row"


@dataclass(frozen=True)
class TaskRows:
    """The inputs as columns, and the rows of each task."""

    inputs: pa.Table
    places: Mapping[str, NDArray[np.int64]]  # by task, in the order in which they come up
    features: tuple[str, ...] | None = None  # of an array, all columns; None: found by their roles

    def by_task(self) -> Iterator[tuple[str, NDArray[np.int64], pa.Table]]:
        """Each task with the places of its rows, and these."""
        for name, places in self.places.items():
            yield name, places, self.inputs.take(pa.array(places))


def take_column(table: pa.Table, name: str | None) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """A frame without a column that is no input, and this column."""
    if name is None:
        return table, None
    if name not in table.column_names:
        raise OptionError(
            f"The frame should have the column `{name}`. Found "
            f"{', '.join(table.column_names[:20])}. Check the spelling."
        )
    return table.drop_columns([name]), table.column(name)


def task_rows(inputs: pa.Table, tasks: Any, features: tuple[str, ...] | None = None) -> TaskRows:
    """Rows with their tasks; all of one task unless these are named."""
    if tasks is None:
        return TaskRows(inputs, {ONLY: np.arange(inputs.num_rows)}, features)
    if np.shape(tasks) != (inputs.num_rows,):
        raise ShapeError(
            f"`tasks` should name the task of each row. Found {inputs.num_rows} rows and tasks of the "
            f"shape {np.shape(tasks)}. Give one name for each row."
        )
    parts = rows_by_task({"tasks": tasks}, "tasks")
    places = {name: np.array(found, dtype=np.int64) for name, (found, _) in parts.items()}
    return TaskRows(inputs, places, features)


def are_texts(X: Any) -> bool:
    """Whether it is one text for each row: of a list, an array, or a column of a frame."""
    if isinstance(X, str) or not hasattr(X, "__len__") or is_frame(X):
        return False
    if len(getattr(X, "shape", (0,))) != 1:
        return False
    return isinstance(next((each for each in X if each is not None), None), str)


def frame_or_texts(X: Any) -> pa.Table:
    """A frame as it is, and texts as the column `text`."""
    return frame_table({"text": X} if are_texts(X) else X)


def array_as_table(values: NDArray[Any], names: Sequence[str]) -> pa.Table:
    """Columns of numbers; NaN is a missing cell."""
    return frame_table({name: values[:, place] for place, name in enumerate(names)})


def is_numeric(frame: Any) -> bool:
    """Whether every column of a frame is one of numbers, which scikit-learn then reads itself."""
    kinds = getattr(frame, "dtypes", None)
    if kinds is None or not hasattr(frame, "iloc"):
        return False
    return all(getattr(kind, "kind", "O") in "biuf" for kind in kinds)
