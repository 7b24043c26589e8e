"""Rows as an estimator is given them: arrays, texts or a frame, with a task and a target for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.tasks import frame_table

ONLY = "task"  # the name of the task where there is one
TARGET = "target of the row"  # the column of targets: a frame should have none of that name


@dataclass(frozen=True)
class TaskRows:
    """The inputs as columns, and the task of each row."""

    inputs: pa.Table
    tasks: NDArray[Any]  # [row], names
    is_text: bool = False


def split_frame(
    frame: Any, task_column: str | None, label: str | None
) -> tuple[pa.Table, NDArray[Any] | None, NDArray[Any] | None]:
    """A frame without the columns that name tasks and hold targets, which come beside it."""
    table = frame_table(frame)
    found: list[NDArray[Any] | None] = []
    for name in (task_column, label):
        if name is None:
            found.append(None)
            continue
        if name not in table.column_names:
            raise OptionError(
                f"The frame should have the column `{name}`. Found "
                f"{', '.join(table.column_names[:20])}. Check the spelling."
            )
        found.append(np.asarray(table.column(name).to_pylist()))
        table = table.drop_columns([name])
    return table, found[0], found[1]


def task_rows(inputs: pa.Table, tasks: Any, *, is_text: bool = False) -> TaskRows:
    """Rows with their tasks; all of one task unless these are named."""
    count = inputs.num_rows
    names = np.full(count, ONLY) if tasks is None else np.asarray(tasks).astype(str)
    if names.shape != (count,):
        raise ShapeError(
            f"`tasks` should name the task of each row. Found {count} rows and tasks of the shape "
            f"{names.shape}."
        )
    return TaskRows(inputs, names, is_text)


def by_task(rows: TaskRows) -> Iterator[tuple[str, NDArray[np.int64], pa.Table]]:
    """Each task with the places of its rows, and these."""
    for name in dict.fromkeys(rows.tasks.tolist()):
        places = np.flatnonzero(rows.tasks == name)
        yield name, places, rows.inputs.take(pa.array(places))


def texts_as_table(texts: Sequence[str]) -> pa.Table:
    return pa.table({"text": pa.array([str(text) for text in texts], pa.string())})


def array_as_table(values: NDArray[Any], names: Sequence[str] | None = None) -> pa.Table:
    """Columns of numbers, under their names or x0, x1, ...; NaN is a missing cell."""
    names = names or [f"x{place}" for place in range(values.shape[1])]
    return frame_table({name: values[:, place] for place, name in enumerate(names)})
