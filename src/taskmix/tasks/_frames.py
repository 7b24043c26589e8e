"""Rows that are not in files: whatever Python holds that has columns, as if a file had been read.

One protocol covers most of it, the Arrow PyCapsule interface (polars, duckdb, pyarrow and others have
`__arrow_c_stream__`); pandas is gone over column by column, because a column of its objects may hold
anything. Neither is imported here: whoever gives a frame has done so.

Pairs of an input and a target: arrays `(X, y)`, or a data set of PyTorch that gives both by row.

Folders that `datasets` has written by `save_to_disk`, read without that package.

A saved `Dataset` is a folder with `state.json`, which names its Arrow streams, and `dataset_info.json`,
which names its classes; a saved `DatasetDict` has such a folder for each split, named in
`dataset_dict.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from taskmix.errors import InputError
from taskmix.files import UnreadableError, read_plain
from taskmix.tasks._formats._readers import Rows, read_rows
from taskmix.tasks._formats._values import table_of_values
from taskmix.tasks._formats._words import bad_file, quoted

_SCALARS = (str, bytes, bool, int, float, complex, np.generic)
Column = tuple[pa.ChunkedArray, str | None, str | None]  # why it is unusable, or text of a mixture


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


def column_of(values: Any) -> Column:
    """One column, whatever holds it; of cells of several kinds also which, and in which rows."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return without_nan(values), None, None
    try:
        if isinstance(values, np.ndarray) and values.ndim > 1:
            values = list(values)
        found = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        cells = [plain_cell(cell) for cell in values]
        table, unusable, mixed = table_of_values({"": cells}, range(1, len(cells) + 1))
        return table.column(""), unusable.get(""), mixed.get("")
    return without_nan(found), None, None


def without_nan(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
    """The column with nothing where it says NaN (a frame has both for a missing cell), text as text."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind = chunked.type
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        # Categories of polars, which Arrow can neither cast nor compare.
        words = [chunk.dictionary.cast(pa.string()).take(chunk.indices) for chunk in chunked.chunks]
        return pa.chunked_array(words, pa.string())
    if pa.types.is_string_view(kind):
        return chunked.cast(pa.string())
    if pa.types.is_floating(kind):
        is_nan = pc.is_nan(chunked)
        if pc.any(is_nan).as_py():
            return pc.if_else(is_nan, pa.scalar(None, kind), chunked)
    return chunked


def plain_cell(cell: Any) -> Any:
    """A value that JSON could have, or as it is."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    elif hasattr(cell, "tolist") and hasattr(cell, "shape"):  # an array, or a tensor
        cell = cell.tolist()
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):  # of pandas
        return None
    if isinstance(cell, float) and cell != cell:
        return None
    if isinstance(cell, Mapping):
        return {str(key): plain_cell(value) for key, value in cell.items()}
    if isinstance(cell, list | tuple):
        return [plain_cell(each) for each in cell]
    return cell


def columns_of_rows(rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
    """The columns of rows that are mappings; a key that a row does not have is a missing cell."""
    names = dict.fromkeys(key for row in rows for key in row)
    return {str(name): [row.get(name) for row in rows] for name in names}


def name_classes(table: pa.Table, features: Mapping[str, Any]) -> tuple[pa.Table, bool]:
    """The table with names in place of class numbers, and whether all of those are hidden (-1).

    A feature is an object of `datasets`, or what its JSON says of it.
    """
    hidden = False
    for column, feature in features.items():
        names, cells = class_names(feature), table.column(column).combine_chunks()
        inner = getattr(cells.type, "value_type", cells.type)
        if not names or not pa.types.is_integer(inner):
            continue
        if inner == cells.type:
            hidden |= len(cells) > 0 and all(cell == -1 for cell in cells.unique().to_pylist())
            cells = _named(cells, names)
        else:
            cells = cells.cast(pa.list_(inner))  # however its lengths are kept
            missing = cells.is_null() if cells.null_count else None
            named = _named(cells.values, names)
            cells = pa.ListArray.from_arrays(cells.offsets, named, mask=missing)
        table = table.set_column(table.column_names.index(column), column, cells)
    return table, hidden


def class_names(feature: Any) -> Any:
    """The names of the classes of a column, or of the classes in its lists; None where it has none."""
    return _part(feature, "names") or _part(_part(feature, "feature"), "names")


def _part(feature: Any, name: str) -> Any:
    if isinstance(feature, Mapping):
        return feature.get(name)
    return getattr(feature, name, None)


def _named(codes: pa.Array, names: Sequence[str]) -> pa.Array:
    """The name of each class; nothing for a class that is hidden or unknown."""
    places = codes.cast(pa.int64(), safe=False).fill_null(-1).to_numpy(zero_copy_only=False)
    known = (places >= 0) & (places < len(names))
    return pa.array(names, pa.string()).take(pa.array(np.where(known, places, 0), mask=~known))


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


_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_JSON_LIMIT = 16 * 2**20
_REMEDY = "Save the data set again with `save_to_disk`, or name the folder of one of its splits."


def is_saved(folder: Path) -> bool:
    """Whether a folder is what `save_to_disk` leaves."""
    one = (folder / _STATE).exists() and (folder / _INFO).exists()
    return one or (folder / _SPLITS).exists()


def saved_splits(folder: Path, *, byte_limit: int | None = None) -> dict[str, Given]:
    """The splits of a saved data set by name; one that is not divided is under an empty name."""
    if not (folder / _SPLITS).exists():
        return {"": saved_rows(folder, byte_limit=byte_limit)}
    names = _document(folder / _SPLITS).get("splits")
    if not _are_plain_names(names):
        bad_file(folder / _SPLITS, "`splits` should name folders.", quoted(names), _REMEDY)
    return {name: saved_rows(folder / name, byte_limit=byte_limit) for name in names}


def saved_rows(folder: Path, *, byte_limit: int | None = None) -> Given:
    """The rows of a saved data set that is not divided, or of one split."""
    names = _data_files(folder / _STATE)
    features = _features(folder / _INFO)
    tables = [read_rows(folder / name, byte_limit=byte_limit).table for name in names]
    try:
        table = pa.concat_tables(tables)
    except pa.ArrowException as error:
        should = "The Arrow files of a saved data set should have the same columns."
        bad_file(folder, should, quoted(str(error)), _REMEDY)
    known = {name: each for name, each in features.items() if name in table.column_names}
    named, hidden = name_classes(table, known)
    plain = [without_nan(column) for column in named.columns]
    named = pa.table(plain, names=named.column_names) if plain else named
    return Given(Rows(named, folder, "parquet"), hidden)


def _data_files(path: Path) -> list[str]:
    """The Arrow streams of a data set, in the order of its rows."""
    state = _document(path)
    files = state.get("_data_files")
    listed = files if isinstance(files, list) else []
    names = [each.get("filename") if isinstance(each, dict) else None for each in listed]
    if not names or not _are_plain_names(names) or not all(n.endswith(".arrow") for n in names):
        should = "`_data_files` should name the Arrow files of the folder, each once."
        bad_file(path, should, quoted(files), _REMEDY)
    if state.get("_indices_data_files"):
        should = "A saved data set should have its rows in order."
        bad_file(path, should, "a selection of rows of another", _REMEDY)
    return names


def _features(path: Path) -> dict[str, Any]:
    """What the columns are, as far as it matters here: which names their class numbers have."""
    found = (_document(path).get("features") if path.exists() else None) or {}
    if not isinstance(found, dict):
        bad_file(path, "`features` should be a JSON object.", quoted(found), _REMEDY)
    for column, feature in found.items():
        names = class_names(feature)
        if names and not _are_texts(names):
            should = f"The names of the classes of `{column}` should be a list of texts."
            bad_file(path, should, quoted(names), _REMEDY)
    return found


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_plain(path, limit=_JSON_LIMIT))
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (OSError, UnreadableError, ValueError, RecursionError) as error:
        bad_file(path, "It should be JSON, as `datasets` writes it.", quoted(str(error)), _REMEDY)
    if not isinstance(found, dict):
        bad_file(path, "It should be a JSON object.", quoted(found), _REMEDY)
    return found


def _are_plain_names(names: Any) -> TypeGuard[list[str]]:
    """Different names in the folder itself: others could lead anywhere."""
    if not _are_texts(names) or len(set(names)) < len(names):
        return False
    return not any(name in ("", ".", "..") or set(name) & set("/\\\0") for name in names)


def _are_texts(found: Any) -> TypeGuard[list[str]]:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)
