"""Folders that `datasets` has written by `save_to_disk`, read without that package.

A saved `Dataset` is a folder with `state.json`, which names its Arrow streams, and `dataset_info.json`,
which names its classes; a saved `DatasetDict` has such a folder for each split, named in
`dataset_dict.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow as pa

from taskmix.files import UnreadableError, read_plain
from taskmix.tasks._formats._readers import Rows, read_rows
from taskmix.tasks._formats._words import bad_file, quoted
from taskmix.tasks._frames._tables import Given, class_names, name_classes, without_nan

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
