"""The tables of a record: their columns, and rows gathered fast and turned into Arrow late."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.records._damage import DamageError

STEPS = pa.schema(
    [
        ("step", pa.int64()),
        ("task", pa.dictionary(pa.int32(), pa.string())),
        ("probability", pa.float64()),  # of this task at this step
        ("probabilities", pa.list_(pa.float64())),  # of all tasks; null: as in the row before
        ("loss", pa.float64()),
        ("loss_after", pa.float64()),
        ("reward", pa.float64()),
        ("weight", pa.float64()),
        ("seconds", pa.float64()),
        ("examples", pa.int32()),
    ]
)
SCORES = pa.schema(
    [
        ("step", pa.int64()),
        ("task", pa.string()),
        ("split", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
    ]
)

Vector = NDArray[np.float64]  # [task]
StepRow = tuple[Any, ...]  # in the order of STEPS, the task by its number

SEALED_AT = 1 << 16  # rows; more wait as Arrow columns, which take a fifth of the memory


class StepBuffer:
    """Rows since the last commit. Adding one is one append: everything else waits for `table`."""

    def __init__(self, task_names: Sequence[str], vector: Vector | None) -> None:
        self._names = task_names
        self._vector = vector  # the probabilities before the first row here
        self._rows: list[StepRow] = []
        self._sealed: list[pa.Table] = []

    def append(self, row: StepRow) -> None:
        rows = self._rows
        rows.append(row)
        if len(rows) >= SEALED_AT:
            self._seal()

    def extend(self, rows: Iterable[StepRow]) -> None:
        self._rows.extend(rows)
        if len(self._rows) >= SEALED_AT:
            self._seal()

    def add_columns(
        self,
        steps: Any,
        tasks: Any,
        probabilities: NDArray[np.float64] | None,
        columns: Sequence[Any],  # as `bulk_rows` has them
    ) -> None:
        """Many rows without a Python object for each: for thousands of rows many times as fast."""
        self._seal()
        self._sealed.append(_bulk_table(steps, tasks, probabilities, columns, self._names))

    def table(self) -> pa.Table:
        """All rows. The first has the whole probability vector, so that a part reads alone."""
        self._seal()
        table = pa.concat_tables(self._sealed) if self._sealed else STEPS.empty_table()
        steps = table["step"].to_numpy()
        if (steps[1:] < steps[:-1]).any():
            place = int(np.argmax(steps[1:] < steps[:-1]))
            raise OptionError(
                f"Steps should be added in their order. Found step {steps[place + 1]} after step "
                f"{steps[place]}. Add the earlier one first."
            )
        return thin_vectors(table, self._vector, keep_first=True)[0]

    def clear(self) -> None:
        self._seal()
        for table in self._sealed:
            self._vector = last_vector(table, self._vector)
        self._sealed = []

    def _seal(self) -> None:
        if self._rows:
            self._sealed.append(_steps_table(self._rows, self._names))
            self._rows = []


_BULK = ("probability", "loss", "loss_after", "reward", "weight", "seconds", "examples")


def _must_fit(name: str, values: Any, count: int) -> None:
    if len(values) != count:
        raise ShapeError(
            f"`{name}` should have one value for each of the {count} rows in `tasks`. "
            f"Found {len(values)}. A single number stands for all rows."
        )


def bulk_rows(
    steps: Any,
    tasks: Sequence[int] | NDArray[np.integer[Any]],
    probabilities: NDArray[np.float64] | None,
    columns: Sequence[Any],  # probability, loss, loss_after, reward, weight, seconds, examples
) -> Iterable[StepRow]:
    """Rows from columns; a single number stands for all rows."""
    count = len(tasks)
    if count == 0:
        return ()

    def spread(name: str, values: Any) -> Iterable[Any]:
        if values is None or np.ndim(values) == 0:
            return repeat(values, count)
        _must_fit(name, values, count)
        listed: Iterable[Any] = values.tolist() if isinstance(values, np.ndarray) else values
        return listed

    if probabilities is None or probabilities.ndim == 1:
        vectors: Iterable[Vector | None] = chain([probabilities], repeat(None, count - 1))
    else:
        vectors = spread("probabilities", list(probabilities))
    first, *others = (spread(name, values) for name, values in zip(_BULK, columns, strict=True))
    return zip(spread("steps", steps), spread("tasks", tasks), first, vectors, *others, strict=True)


def _bulk_table(
    steps: Any,
    tasks: Any,
    probabilities: NDArray[np.float64] | None,
    columns: Sequence[Any],
    task_names: Sequence[str],
) -> pa.Table:
    """The table of what `bulk_rows` gives, column by column."""
    count = len(tasks)

    def spread(name: str, values: Any, kind: pa.DataType) -> pa.Array:
        if values is None:
            return pa.nulls(count, kind)
        if np.ndim(values) == 0:
            return pa.repeat(pa.scalar(values, kind), count)
        _must_fit(name, values, count)
        return pa.array(values, kind)

    if probabilities is None or probabilities.ndim == 1:
        given = [] if probabilities is None else [(0, probabilities)]
    else:
        _must_fit("probabilities", probabilities, count)
        given = list(enumerate(probabilities))
    probability, *others = (
        spread(name, values, STEPS.field(name).type)
        for name, values in zip(_BULK, columns, strict=True)
    )
    step = spread("steps", steps, pa.int64())
    task = _tasks_column(np.asarray(tasks, dtype=np.int32), task_names)
    arrays = [step, task, probability, _vectors_column(count, given), *others]
    return pa.Table.from_arrays(arrays, schema=STEPS)


def scores_table(rows: Sequence[tuple[int, str, str, str, float]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCORES)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, SCORES.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCORES)


def _steps_table(rows: list[StepRow], names: Sequence[str]) -> pa.Table:
    step, task, probability, vectors, *numbers, examples = zip(*rows, strict=True)
    columns = [
        pa.array(step, pa.int64()),
        _tasks_column(np.array(task, dtype=np.int32), names),
        pa.array(probability, pa.float64()),
        _vectors_column(len(rows), [(row, v) for row, v in enumerate(vectors) if v is not None]),
        *(pa.array(values, pa.float64()) for values in numbers),
        pa.array(examples, pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=STEPS)


def _tasks_column(indices: NDArray[np.int32], names: Sequence[str]) -> pa.DictionaryArray:
    if indices.min() < 0 or indices.max() >= len(names):
        raise OptionError(
            f"A task should be a number from 0 to {len(names) - 1}. Found {indices.min()} to "
            f"{indices.max()}. Count tasks in the order they were given to `start`."
        )
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(names, pa.string()))


def _vectors_column(count: int, given: Sequence[tuple[int, Vector]]) -> pa.ListArray:
    valid = np.zeros(count, dtype=bool)
    valid[[row for row, _ in given]] = True
    width = len(given[0][1]) if given else 0
    offsets = np.concatenate([[0], np.cumsum(valid) * width]).astype(np.int32)
    values = np.concatenate([vector for _, vector in given]) if given else np.empty(0)
    return pa.ListArray.from_arrays(offsets, pa.array(values), mask=pa.array(~valid))


def thin_vectors(
    table: pa.Table, before: Vector | None, *, keep_first: bool
) -> tuple[pa.Table, Vector | None]:
    """Leaves a vector only where it changes, and with `keep_first` in the first row as well.

    `before` is the vector that held until the first row; the one that holds after the last row is
    given back. So a record is the same whenever it was committed.
    """
    rows, matrix = vectors_of(table)
    if before is not None and len(table) and (len(rows) == 0 or rows[0] > 0):
        matrix = np.vstack([before, matrix]) if len(rows) else before[None, :]
        rows = np.concatenate([[0], rows])
    if len(rows) == 0:
        return table, before
    bits = matrix.view(np.int64)
    changed = np.ones(len(rows), dtype=bool)
    changed[1:] = (bits[1:] != bits[:-1]).any(axis=1)
    if before is not None and rows[0] == 0 and not keep_first:
        changed[0] = bool((bits[0] != before.view(np.int64)).any())
    given = list(zip(rows[changed].tolist(), matrix[changed], strict=True))
    place = table.schema.get_field_index("probabilities")
    column = _vectors_column(len(table), given)
    return table.set_column(place, table.schema.field(place), column), matrix[-1].copy()


def vectors_of(table: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows that have a probability vector, and the vectors, [row, task]."""
    column = table["probabilities"].combine_chunks()
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    values = column.flatten().to_numpy(zero_copy_only=False)
    widths = set(pc.list_value_length(column).unique().drop_null().to_pylist())
    if len(widths) > 1:
        raise DamageError(
            f"All probability vectors of a record should be as long. Found {sorted(widths)[:5]} "
            "numbers. Restore the file from a copy."
        )
    width = widths.pop() if widths else 0
    return rows, np.ascontiguousarray(values, dtype=np.float64).reshape(len(rows), width)


def last_vector(table: pa.Table, before: Vector | None) -> Vector | None:
    """The vector that holds after the last row."""
    rows, matrix = vectors_of(table)
    return matrix[-1].copy() if len(rows) else before


def with_tasks(batch: pa.RecordBatch, names: pa.StringArray) -> pa.RecordBatch:
    """The same rows with the run's own task numbers as the indices of `task`."""
    place = batch.schema.get_field_index("task")
    if place < 0:
        return batch
    column = batch.column(place)
    known = pc.index_in(column.dictionary, value_set=names)
    indices = known.take(column.indices)
    if indices.null_count:
        unknown = column.filter(indices.is_null())[0].as_py()
        raise DamageError(
            f"`run.json` should list every task of the record. It has no task `{unknown}`. Restore "
            "the file from a copy."
        )
    field = batch.schema.field(place)
    return batch.set_column(place, field, pa.DictionaryArray.from_arrays(indices, names))
