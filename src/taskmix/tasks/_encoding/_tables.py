"""Tables as vectors: numbers standardised, words as indicators, one layout for all tasks.

The layout is learned from the `train` rows of all tasks together and is in the alphabetical order of
the column names, so the order of columns in a file does not matter.

- A number is shifted and scaled by the mean and the standard deviation; a missing one becomes the
  mean, and where `train` has missing ones a further feature marks them.
- A column of strings or booleans becomes one feature for each of its `max_categories` most frequent
  values, one for all others, and one for missing ones where `train` has them.
- A column that holds numbers in one task and strings in another is read as strings.
- Features of a column that a task does not have are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.tasks._encoding._assemble import SourceSplit, at_least, distinct_tables, encoded_tasks
from taskmix.tasks._encoding._cache import cached
from taskmix.tasks._encoding._inputs import DenseInputs, EncodedTasks
from taskmix.tasks._task import TaskSet


@dataclass(frozen=True, kw_only=True)
class TableEncoding:
    """Tables as `DenseInputs`; `extra["features"]` names the features.

    >>> import pyarrow as pa
    >>> rows = pa.table({"size": [1.0, 3.0], "colour": ["red", "blue"], "label": ["no", "yes"]})
    >>> encoded = TableEncoding().encode(tables_as_tasks({"a": {"train": rows, "dev": rows}}))
    >>> encoded["a"].splits["train"].inputs.values.tolist()  # blue, red, neither, size
    [[0.0, 1.0, 0.0, -1.0], [1.0, 0.0, 0.0, 1.0]]
    """

    standardize: bool = True
    max_categories: int = 64  # of one column; the rarer ones share a feature
    codes: tuple[str, ...] = ()  # columns whose numbers are names, such as those of occupations

    def __post_init__(self) -> None:
        at_least("max_categories", self.max_categories, 1)

    def encode(self, tasks: TaskSet, *, cache: Path | None = None) -> EncodedTasks:
        """The tasks as tensors; from the folder `cache` where the same was encoded before."""
        return cached(lambda: self._encode(tasks), tasks, repr(self), cache)

    def _encode(self, tasks: TaskSet) -> EncodedTasks:
        tables = self._tables(tasks)
        return _encoded(tasks, tables, self._fit(tables))

    def learned(self, tasks: TaskSet) -> dict[str, Any]:
        """What the layout of these tasks is, as plain values."""
        columns = self._fit(self._tables(tasks))
        return {"columns": [{"kind": type(each).__name__, **asdict(each)} for each in columns]}

    def encode_with(self, learned: Mapping[str, Any], tasks: TaskSet) -> EncodedTasks:
        """Tasks in a layout that was learned before; nothing is learned from them."""
        kinds = {"_Number": _Number, "_Category": _Category}
        columns: list[_Number | _Category] = []
        for each in learned["columns"]:
            options = {key: value for key, value in each.items() if key != "kind"}
            if "values" in options:
                options["values"] = tuple(options["values"])
            columns.append(kinds[each["kind"]](**options))
        return _encoded(tasks, self._tables(tasks, needs_train=False), columns)

    def _tables(self, tasks: TaskSet, *, needs_train: bool = True) -> dict[SourceSplit, pa.Table]:
        return distinct_tables(
            tasks,
            "TableEncoding",
            lambda task: task.inputs == "table",
            advice="Use `WordEncoding` for text and `WindowEncoding` for tokens.",
            needs_train=needs_train,
        )

    def _fit(self, tables: Mapping[SourceSplit, pa.Table]) -> list[_Number | _Category]:
        train = {key: table for key, table in tables.items() if key.split == "train"}
        columns: list[_Number | _Category] = []
        types = {
            key: dict(zip(t.column_names, t.schema.types, strict=True)) for key, t in tables.items()
        }
        for name in sorted({name for known in types.values() for name in known}):
            kinds = {_kind(name, known[name]) for known in types.values() if name in known}
            having = [table for key, table in train.items() if name in types[key]]
            if "category" in kinds or name in self.codes:
                columns.append(_Category.fit(name, having, self.max_categories))
            elif "number" in kinds:
                columns.append(_Number.fit(name, having, standardize=self.standardize))
        return columns


def families_of(learned: Mapping[str, Any]) -> dict[str, Literal["number", "text"]]:
    """What the columns of a layout that was learned before hold."""
    numbers = {each["name"]: each["kind"] == "_Number" for each in learned.get("columns", ())}
    return {name: "number" if is_number else "text" for name, is_number in numbers.items()}


def _encoded(
    tasks: TaskSet, tables: Mapping[SourceSplit, pa.Table], columns: Sequence[_Number | _Category]
) -> EncodedTasks:
    names = tuple(feature for column in columns for feature in column.features)
    inputs = {key: DenseInputs(_matrix(columns, key, table)) for key, table in tables.items()}
    return encoded_tasks(tasks, inputs, features=len(names), extra={"features": names})


@dataclass(frozen=True, eq=False)
class _Number:
    name: str
    mean: float  # what a missing value becomes, in the file's unit
    shift: float
    scale: float
    marks_missing: bool

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} is missing") if self.marks_missing else (self.name,)

    @classmethod
    def fit(cls, name: str, tables: Iterable[pa.Table], *, standardize: bool) -> _Number:
        values = np.concatenate([np.zeros(0), *(_numbers(table, name) for table in tables)])
        known = values[np.isfinite(values)]  # an infinite one is an error, with its row, later
        # By a power of two, which costs no digit: squares of large numbers are none, of small ones 0.
        _, exponent = np.frexp(np.abs(known).max(initial=0.0))
        level = np.ldexp(known, -exponent)
        mean = float(np.ldexp(level.mean(), exponent)) if len(known) else 0.0
        deviation = float(np.ldexp(level.std(), exponent)) if len(known) else 0.0
        # A column that rounds to a constant carries nothing; dividing by its noise would.
        if deviation <= 1e-12 * abs(mean):
            deviation = 1.0
        shift, scale = (mean, deviation) if standardize else (0.0, 1.0)
        return cls(name, mean, shift, scale, marks_missing=bool(np.isnan(values).any()))

    def fill(self, table: pa.Table, block: NDArray[np.float32]) -> None:
        values = _numbers(table, self.name)
        missing = np.isnan(values)
        with np.errstate(over="ignore"):  # an infinite one is an error, with its row, later
            block[:, 0] = (np.where(missing, self.mean, values) - self.shift) / self.scale
        if self.marks_missing:
            block[:, 1] = missing


@dataclass(frozen=True, eq=False)
class _Category:
    name: str
    values: tuple[str, ...]
    marks_missing: bool

    @property
    def features(self) -> tuple[str, ...]:
        named = tuple(f"{self.name} = {value}" for value in self.values)
        other = f"{self.name} is another"
        return (*named, other, f"{self.name} is missing") if self.marks_missing else (*named, other)

    @classmethod
    def fit(cls, name: str, tables: Iterable[pa.Table], most: int) -> _Category:
        chunks = [_strings(table, name) for table in tables]
        column = pa.chunked_array(chunks, type=pa.large_string())
        counts = {
            item["values"]: item["counts"]
            for item in pc.value_counts(column.drop_null()).to_pylist()
        }
        frequent = sorted(counts, key=lambda value: (-counts[value], value))[:most]
        return cls(name, tuple(sorted(frequent)), marks_missing=column.null_count > 0)

    def fill(self, table: pa.Table, block: NDArray[np.float32]) -> None:
        column = _strings(table, self.name)
        known = pa.array(self.values, type=pa.large_string())
        places = pc.fill_null(pc.index_in(column, value_set=known), len(self.values)).to_numpy()
        missing = column.is_null().to_numpy(zero_copy_only=False)
        present = np.flatnonzero(~missing)
        block[present, places[present]] = 1.0
        if self.marks_missing:
            block[:, -1] = missing


def _matrix(
    columns: Iterable[_Number | _Category], key: SourceSplit, table: pa.Table
) -> torch.Tensor:
    width = sum(len(column.features) for column in columns)
    values = np.zeros((table.num_rows, width), dtype=np.float32)
    known = set(table.column_names)
    begin = 0
    for column in columns:
        end = begin + len(column.features)
        if column.name in known:
            column.fill(table, values[:, begin:end])
        begin = end
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise InputError(
            f"The numbers of {key.source}, split `{key.split}`, should be finite. Found an infinite "
            f"one in row {row + 1}. Leave the value empty if it is not known."
        )
    return torch.from_numpy(values)


def _kind(name: str, kind: Any) -> str:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind):
        return "nothing"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "category"
    raise InputError(
        f"The column `{name}` should hold numbers, strings or booleans. Found {kind}. "
        "Convert it or leave it out."
    )


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    column = table.column(name).cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _strings(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name).cast(pa.large_string()).combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
