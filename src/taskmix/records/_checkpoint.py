"""The files a run can go on from, and `checkpoint/latest.json`, which says which of them count.

`latest.json` is replaced last, so what it names is complete. It names the two newest checkpoints:
should the files of one be damaged later, the run goes on from the other.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from taskmix.errors import RecordError
from taskmix.files import delete, list_folder, read_plain, write_bytes
from taskmix.records._damage import DamageError
from taskmix.records._state import StateTree, StoredFile, load_state

FORMAT = 1
FOLDER = "checkpoint"
NAME = "latest.json"
KEPT = 2  # checkpoints
STATES = re.compile(r"(state|best)-[0-9]+(-[0-9]+)?\.safetensors")  # names that stay in the folder
ATTEMPTS = 10  # of a reader whose files are replaced while it looks


@dataclass(frozen=True)
class Checkpoint:
    """A point to go on from."""

    step: int
    state: StateTree  # None once the run is finished and its best state is kept instead
    best: StateTree  # None where no best state was given
    best_step: int | None


@dataclass(frozen=True, kw_only=True)
class CheckpointEntry:
    """A checkpoint as `latest.json` has it."""

    step: int
    seconds: float  # of training until then
    best_step: int | None
    state: StoredFile | None
    best: StoredFile | None
    steps_end: int  # the rows that belong to it are those of the parts up to here
    scores_end: int


def parse_checkpoint_entry(document: Mapping[str, Any]) -> CheckpointEntry:
    """Reads back what `asdict` made of an entry; a KeyError, TypeError or ValueError if it is none."""

    def stored(key: str) -> StoredFile | None:
        if document[key] is None:
            return None
        file = StoredFile(**document[key])
        if not STATES.fullmatch(file.file):
            raise ValueError(f"{file.file!r} as the name of a state")
        if type(file.size) is not int or type(file.crc32) is not str:
            raise TypeError("a size or a checksum of another type")
        return file

    entry = CheckpointEntry(**{**document, "state": stored("state"), "best": stored("best")})
    numbers = (entry.step, entry.steps_end, entry.scores_end, entry.best_step or 0)
    if set(map(type, numbers)) != {int} or type(entry.seconds) not in (int, float):
        raise TypeError("a step or a time that is no number")
    return entry


def write_entries(folder: Path, entries: Sequence[CheckpointEntry]) -> None:
    """Makes these the run's checkpoints, the newest first."""
    document = {"format": FORMAT, "checkpoints": [asdict(entry) for entry in entries]}
    text = json.dumps(document | {"crc32": _sum(document)}, indent=2)
    write_bytes(folder / FOLDER / NAME, (text + "\n").encode())


def read_checkpoint_entries(folder: Path) -> list[CheckpointEntry]:
    """The run's checkpoints, the newest first; none where there is no `latest.json`."""
    path = folder / FOLDER / NAME
    try:
        data = read_plain(path)
    except FileNotFoundError:
        return []
    try:
        document = json.loads(data)
        total = document.pop("crc32")
        sound = total == _sum(document)
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, "something else") from error
    if not sound:
        raise _damaged(path, "a checksum that does not fit")
    if document.get("format") != FORMAT:
        raise RecordError(
            f"`{path}` should be of format {FORMAT}. Found {document.get('format')!r}, of another "
            "version of taskmix. Go on with that version."
        )
    try:
        return [parse_checkpoint_entry(entry) for entry in document["checkpoints"]]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f"an entry in another form ({error})") from error


def load_checkpoint(folder: Path, entry: CheckpointEntry) -> Checkpoint:
    """Reads and checks the files of a checkpoint."""
    return Checkpoint(
        step=entry.step,
        state=_load(folder, entry.state),
        best=_load(folder, entry.best),
        best_step=entry.best_step,
    )


def load_best(folder: Path, entry: CheckpointEntry) -> StateTree:
    """The best state alone."""
    return _load(folder, entry.best)


def forget_files(folder: Path, entries: Sequence[CheckpointEntry]) -> None:
    """Deletes the states that none of these checkpoints needs."""
    needed = file_names(entries)
    for name in list_folder(folder / FOLDER):
        if is_state(Path(name)) and name not in needed:
            delete(folder / FOLDER / name, is_ours=is_state)


def forget_entries(folder: Path) -> None:
    """Deletes the list of checkpoints, and no state."""
    delete(folder / FOLDER / NAME, is_ours=lambda path: path.name == NAME)


def is_state(path: Path) -> bool:
    """Whether a file of a run's checkpoint folder is ours, by its name."""
    return STATES.fullmatch(path.name) is not None


def file_names(entries: Sequence[CheckpointEntry]) -> set[str]:
    return {stored.file for entry in entries for stored in (entry.state, entry.best) if stored}


def _load(folder: Path, stored: StoredFile | None) -> StateTree:
    return None if stored is None else load_state(folder / FOLDER / stored.file, expected=stored)


def _sum(document: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(document, sort_keys=True).encode()):08x}"


def _damaged(path: Path, found: str) -> DamageError:
    return DamageError(
        f"`{path}` should name the run's checkpoints. Found {found}. Restore the file from a copy, "
        "or ask for the run again: it starts over."
    )
