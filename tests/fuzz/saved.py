"""Folders of `save_to_disk`: their JSON files, which say what is in them, and their Arrow streams."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa

from taskmix.tasks import load_tasks

_CLASS = {"names": ["bad", "good"], "_type": "ClassLabel"}
_TEXT = {"dtype": "string", "_type": "Value"}
_FEATURES = {"text": _TEXT, "label": _CLASS, "marks": {"feature": _CLASS, "_type": "List"}}
_DATA = "data-00000-of-00001.arrow"
_STATE = {
    "_data_files": [{"filename": _DATA}],
    "_fingerprint": "0123456789abcdef",
    "_format_columns": None,
    "_format_kwargs": {},
    "_format_type": None,
    "_output_all_columns": False,
    "_split": None,
}
_INFO = {"citation": "", "description": "", "features": _FEATURES, "license": ""}


def saved_files() -> dict[str, tuple[bytes, ...]]:
    """Each kind of file of a saved `DatasetDict`, by its place, as it may be written."""
    return {
        "films/dataset_dict.json": (json.dumps({"splits": ["train", "test"]}).encode(),),
        "films/train/state.json": (json.dumps(_STATE, indent=2, sort_keys=True).encode(),),
        "films/train/dataset_info.json": (json.dumps(_INFO, indent=2, sort_keys=True).encode(),),
        f"films/train/{_DATA}": tuple(map(_stream, (None, "zstd", "lz4"))),
    }


def files_beside(place: str) -> dict[str, bytes]:
    """All files of the folder but one: its other split stays sound."""
    sound = {name: seeds[0] for name, seeds in saved_files().items()}
    sound |= {name.replace("train", "test"): data for name, data in sound.items()}
    return {name: data for name, data in sound.items() if name != place}


def read_saved(folder: Path) -> object:
    return load_tasks(folder / "films", byte_limit=64 << 20)


def _stream(packing: str | None) -> bytes:
    rows = pa.table(
        {
            "text": [f"word{n % 3} a b" for n in range(12)],
            "label": [n % 2 for n in range(12)],
            "marks": [[0, 1], [], [1]] * 4,
        }
    )
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=packing)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    return sink.getvalue()
