"""What has columns, as rows of a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from taskmix.errors import InputError
from taskmix.tasks._formats import Rows, quoted
from taskmix.tasks._frames._cells import Column, column_of, columns_of_rows, without_nan
from taskmix.tasks._frames._classes import name_classes

_SCALARS = (str, bytes, bool, int, float, complex, np.generic)


@dataclass(frozen=True, eq=False)
class Given:
    """Rows that were given, and whether the classes of all of them are hidden."""

    rows: Rows
    hidden: bool = False
    remarks: tuple[str, ...] = ()


def rows_of(given: Any, where: str = "the frame") -> Given | None:
    """The rows of whatever has columns; None where it has none. `where` is what sentences call it."""
    if is_stream(given):
        raise InputError(
            f"Rows should be at hand, so that they can be divided and looked at. Found "
            f"{type(given).__name__} as {where}, a stream. Take rows of it first, for instance "
            "`Dataset.from_list(list(stream.take(10_000)))`, or save them to a file."
        )
    if isinstance(given, pa.Table):
        return Given(_plain_rows(given, where))
    if isinstance(given, pa.RecordBatch):
        return Given(_plain_rows(pa.Table.from_batches([given]), where))
    if _is_dataset(given):
        table, hidden = name_classes(given.with_format("arrow")[:], given.features)
        return Given(_plain_rows(table, where), hidden)
    if _is_frame(given, "pandas"):
        return _from_pandas(given, where)
    if _is_frame(given, "polars", "LazyFrame"):
        raise InputError(
            f"A frame should have its rows at hand. Found a LazyFrame as {where}. Call `.collect()`."
        )
    if hasattr(given, "__arrow_c_stream__") and not isinstance(given, pa.ChunkedArray):
        try:
            return Given(_plain_rows(pa.RecordBatchReader.from_stream(given).read_all(), where))
        except pa.ArrowInvalid:  # one column, without a name
            return None
    if isinstance(given, Mapping) and holds_columns(given):
        return Given(_from_columns({str(name): each for name, each in given.items()}, where))
    if isinstance(given, Sequence) and len(given) and _all_mappings(given):
        return Given(_from_columns(columns_of_rows(given), where))
    return None


def is_table(given: Any) -> bool:
    """Whether it has columns, without reading it."""
    if isinstance(given, pa.Table | pa.RecordBatch) or _is_dataset(given) or is_stream(given):
        return True
    if _is_frame(given, "pandas") or _is_frame(given, "polars", "LazyFrame"):
        return True
    if hasattr(given, "__arrow_c_stream__"):
        return not isinstance(given, pa.ChunkedArray) and not _is_series(given)
    if isinstance(given, Mapping):
        return holds_columns(given)
    return isinstance(given, list) and bool(given) and isinstance(given[0], Mapping)


def is_stream(given: Any) -> bool:
    """Whether it is an iterable data set, of Hugging Face or of PyTorch, with no rows at hand."""
    return any(base.__name__.startswith("IterableDataset") for base in type(given).__mro__)


def holds_columns(given: Mapping[Any, Any]) -> bool:
    """Whether the values of a mapping are columns, not tables: one that surely is says so for all."""
    return any(map(_is_column, given.values()))


def _is_column(value: Any) -> bool:
    if isinstance(value, pa.Array | pa.ChunkedArray | range) or _is_series(value):
        return True
    if hasattr(value, "shape") and hasattr(value, "tolist"):
        return len(value.shape) > 0  # an array, or a tensor
    if not isinstance(value, list | tuple) or not value:
        return False
    first = next((each for each in value if each is not None), None)
    if first is None or isinstance(first, _SCALARS):
        return True
    # A list of lists has a list in each cell; a tuple of them is (train, dev, test), or (X, y).
    inner = isinstance(first, list) and (not first or not isinstance(first[0], Mapping | tuple))
    return isinstance(value, list) and (inner or _is_conversation(first))


def _is_conversation(cell: Any) -> bool:
    return isinstance(cell, list) and all(
        isinstance(each, Mapping) and {"role", "content"} <= set(each) for each in cell
    )


def _is_series(value: Any) -> bool:
    return any(_is_frame(value, package, "Series") for package in ("pandas", "polars"))


def _is_frame(given: Any, package: str, name: str = "DataFrame") -> bool:
    """Whether it is the package's frame; a package that nobody imported has made none."""
    kind = getattr(sys.modules.get(package), name, None)
    return kind is not None and isinstance(given, kind)


def _is_dataset(given: Any) -> bool:
    """A data set of Hugging Face: known by what it can do, whatever its version calls it."""
    return hasattr(given, "features") and callable(getattr(given, "with_format", None))


def _all_mappings(rows: Sequence[Any]) -> bool:
    return not isinstance(rows, str) and all(isinstance(row, Mapping) for row in rows)


def _plain_rows(table: pa.Table, where: str) -> Rows:
    _check_names(table.column_names, where)
    columns = [without_nan(column) for column in table.columns]
    names = table.column_names
    plain = pa.table(columns, names=names) if names else table
    return Rows(plain.replace_schema_metadata(None), Path(where), "parquet")


def _from_columns(columns: Mapping[str, Any], where: str) -> Rows:
    return _as_rows({name: column_of(values) for name, values in columns.items()}, where)


def _from_pandas(frame: Any, where: str) -> Given:
    names = [_column_name(name, where) for name in frame.columns]
    _check_names(names, where)
    columns = {name: column_of(frame.iloc[:, place]) for place, name in enumerate(names)}
    rows = _as_rows(columns, where)
    index = [f"`{name}`" for name in frame.index.names if name is not None]
    remark = (
        f"the index ({', '.join(index)}) of {where} is not read; `reset_index()` makes it columns"
    )
    return Given(rows, remarks=(remark,) if index else ())


def _column_name(name: Any, where: str) -> str:
    if isinstance(name, tuple):
        raise InputError(
            f"A column should have one name. Found {quoted(name)} in {where}, which has several levels. "
            "Join them, for instance by `frame.columns = frame.columns.map('_'.join)`."
        )
    return str(name)


def _as_rows(columns: Mapping[str, Column], where: str) -> Rows:
    lengths = {name: len(cells) for name, (cells, _, _) in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{count} in {quoted(name)}" for name, count in list(lengths.items())[:5])
        raise InputError(f"Columns should be of equal lengths. Found {said}, in {where}.")
    return Rows(
        pa.table({name: cells for name, (cells, _, _) in columns.items()}),
        Path(where),
        "parquet",
        unusable={name: why for name, (_, why, _) in columns.items() if why is not None},
        mixed={name: why for name, (_, _, why) in columns.items() if why is not None},
    )


def _check_names(names: Sequence[str], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"Column names should differ. Found {quoted(name)} twice in {where}. Rename one of the "
                "two columns."
            )
