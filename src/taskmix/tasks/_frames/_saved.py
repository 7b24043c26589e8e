"""Folders that `datasets` has written by `save_to_disk`, read without that package.

A saved `Dataset` is a folder with `state.json`, which names its Arrow streams, and `dataset_info.json`,
which names its classes; a saved `DatasetDict` has such a folder for each split, named in
`dataset_dict.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from taskmix.files import UnreadableError, read_plain
from taskmix.tasks._formats import Rows, allowance, bad_file, open_file, quoted
from taskmix.tasks._frames._cells import without_nan
from taskmix.tasks._frames._classes import name_classes
from taskmix.tasks._frames._tables import Given

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
_JSON_LIMIT = 16 * 2**20
_REMEDY = "Save the data set again with `save_to_disk`."


def is_saved(folder: Path) -> bool:
    """Whether a folder is what `save_to_disk` leaves."""
    one = (folder / _STATE).is_file() and (folder / _INFO).is_file()
    return one or (folder / _SPLITS).is_file()


def saved_splits(folder: Path, *, byte_limit: int | None = None) -> dict[str, Given]:
    """The splits of a saved data set by name; one that is not divided is under an empty name."""
    if not (folder / _SPLITS).is_file():
        return {"": _read(folder, byte_limit)}
    names = _document(folder / _SPLITS).get("splits")
    if not isinstance(names, list) or not all(map(_is_plain_name, names)):
        bad_file(folder / _SPLITS, "`splits` should name folders.", quoted(names), _REMEDY)
    return {name: _read(folder / name, byte_limit) for name in names}


def _read(folder: Path, byte_limit: int | None) -> Given:
    state = _document(folder / _STATE)
    files = state.get("_data_files")
    names = [each.get("filename") if isinstance(each, dict) else None for each in files or ()]
    if not names or not all(map(_is_plain_name, names)):
        should = "`_data_files` should name the Arrow files of the folder."
        bad_file(folder / _STATE, should, quoted(files), _REMEDY)
    if state.get("_indices_data_files"):
        should = "A saved data set should have its rows in order."
        bad_file(folder / _STATE, should, "a selection of rows of another", _REMEDY)
    table = _joined([_stream(folder / str(name), byte_limit) for name in names], folder)
    features = _document(folder / _INFO).get("features") if (folder / _INFO).exists() else None
    known = features if isinstance(features, dict) else {}
    known = {name: each for name, each in known.items() if name in table.column_names}
    named, hidden = name_classes(table, known)
    plain = [without_nan(column) for column in named.columns]
    named = pa.table(plain, names=named.column_names) if plain else named
    return Given(Rows(named, folder, "parquet"), hidden)


def _stream(path: Path, byte_limit: int | None) -> pa.Table:
    allowed = allowance(path, byte_limit, is_table=True)
    try:
        with open_file(path) as file, pa.ipc.open_stream(file) as reader:
            batches, size = [], 0
            for batch in reader:
                size += batch.nbytes
                allowed.check(size)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError) as error:
        should = "An Arrow file of a saved data set should be a whole Arrow stream."
        bad_file(path, should, f"that it cannot be read ({quoted(str(error))})", _REMEDY)
    return table.replace_schema_metadata(None)


def _joined(tables: list[pa.Table], folder: Path) -> pa.Table:
    try:
        return pa.concat_tables(tables)
    except pa.ArrowException as error:
        should = "The Arrow files of a saved data set should have the same columns."
        bad_file(folder, should, quoted(str(error)), _REMEDY)


def _document(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_plain(path, limit=_JSON_LIMIT))
    except (OSError, UnreadableError, ValueError, RecursionError) as error:
        bad_file(path, "It should be JSON, as `datasets` writes it.", quoted(str(error)), _REMEDY)
    if not isinstance(found, dict):
        bad_file(path, "It should be a JSON object.", quoted(found), _REMEDY)
    return found


def _is_plain_name(name: Any) -> bool:
    """A name in the folder itself: others could lead anywhere."""
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")
