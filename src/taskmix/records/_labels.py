"""Labels: what reports call a kind of run, beside the run, as they do not determine it.

The first label a run was asked for under is in its `run.json`, which only the holder of its lock writes.
Each further one is a small file of its own in `labels/`, named by a hash of the label: anybody may add
one at any time, to a finished run or to one that another process is at, and adding twice adds once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from taskmix.errors import RecordError
from taskmix.files import list_folder, make_folder, read_plain, write_bytes

FOLDER = "labels"
FILES = re.compile(r"[0-9a-f]{16}\.json")
LIMIT = 1 << 20  # bytes of a label's file


def add_label(folder: Path, label: str) -> None:
    """Adds a label to the run in a folder."""
    if label not in read_labels(folder):
        make_folder(folder / FOLDER)
        document = json.dumps({"label": label}) + "\n"
        write_bytes(folder / FOLDER / f"{_digest(label)}.json", document.encode())


def read_labels(
    folder: Path, *, note: Callable[[str], object] = lambda sentence: None
) -> list[str]:
    """The labels that were added to the run in a folder, sorted.

    One whose file is damaged is told to `note` and left out: it comes back when it is asked for again.
    """
    found = []
    try:
        names = list_folder(folder / FOLDER)
    except RecordError as error:  # no folder: the run is as good as it was
        note(str(error))
        return []
    for name in names:
        if FILES.fullmatch(name):
            try:
                found.append(_read(folder / FOLDER / name))
            except RecordError as error:
                note(str(error))
    return sorted(found)


def _read(path: Path) -> str:
    try:
        label = json.loads(read_plain(path, limit=LIMIT))["label"]
        if _digest(label) != path.stem:
            raise ValueError("the file of another label")
        label.encode()  # half of a surrogate pair is no text that Arrow takes
    except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError) as error:
        raise RecordError(
            f"`{path}` should be a label of the run. Found something else ({error}). Ask for the run "
            "under that label again, which writes it again."
        ) from error
    return str(label)


def _digest(label: str) -> str:
    return hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:16]
