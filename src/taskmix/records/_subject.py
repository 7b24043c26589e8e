"""Which tasks a study is about: `study.json` has a hash of the rows of each task it has met.

Runs are named by what determines them, so runs of other data would lie beside those of the first, and a
page, a plan or a model would speak of both as one. Tasks may join later, as where one command trains
some tasks of a folder and the next one others; a task with other rows may not.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from taskmix.errors import InputError, RecordError
from taskmix.files import UnreadableError, holding, make_folder, read_plain, write_bytes

NAME = "study.json"
FORMAT = 1
LOCK = ".study.lock"
PATIENCE = 5.0  # seconds for another command to write its few lines


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Tasks that a study is to be about.

    >>> from pathlib import Path
    >>> Subject(contents={"a": "hash of its rows"}, origin="data").settle(Path("study"))
    >>> Subject(contents={"a": "of other rows"}, origin="data").check(Path("study"))
    Traceback (most recent call last):
    taskmix.errors.InputError: `study` should be used for the tasks it is about. Found other ...
    """

    contents: Mapping[str, str]  # of each task, a hash of its rows
    origin: str  # where they were read: an absolute path, or another name

    @staticmethod
    def known(folder: Path) -> dict[str, str]:
        """Of each task that the study in a folder has met, the hash of its rows."""
        return _read(folder / NAME)[0]

    def check(self, folder: Path) -> None:
        """Raises where the study in a folder is about other tasks; writes nothing."""
        _check(folder, *_read(folder / NAME), self.contents, _kept(self.origin, folder))

    def settle(self, folder: Path) -> None:
        """Makes these tasks part of what the study is about."""
        make_folder(folder)
        origin = _kept(self.origin, folder)
        deadline = time.monotonic() + PATIENCE
        while True:
            with holding(folder / LOCK) as held:
                if held:
                    known, origins = _read(folder / NAME)
                    _check(folder, known, origins, self.contents, origin)
                    if known | dict(self.contents) != known or origin not in origins:
                        _write(folder / NAME, known | dict(self.contents), {*origins, origin})
                    return
            if time.monotonic() > deadline:
                raise RecordError(
                    f"`{folder / NAME}` should be free to be written. Found that another process "
                    f"holds `{LOCK}` beside it. Wait until it is done, or choose another folder."
                )
            time.sleep(0.02)


def _check(
    folder: Path,
    known: Mapping[str, str],
    origins: set[str],
    contents: Mapping[str, str],
    origin: str,
) -> None:
    changed = [name for name, content in contents.items() if known.get(name, content) != content]
    if changed:
        raise InputError(
            f"`{folder}` should be used for the tasks it is about. Found other rows of "
            f"{_some(changed)} than it was begun with. Choose another folder for these tasks; the "
            "study is as it was."
        )
    if known and not contents.keys() & known.keys() and origin not in origins:
        raise InputError(
            f"`{folder}` should be used for the tasks it is about, {_some(list(known))}. Found "
            f"{_some(list(contents))}. Choose another folder for these tasks; the study is as it was."
        )


def _read(path: Path) -> tuple[dict[str, str], set[str]]:
    try:
        document = json.loads(read_plain(path))
        if document["format"] > FORMAT:
            raise RecordError(
                f"`{path}` should be of format {FORMAT}. Found {document['format']}, which a newer "
                "taskmix wrote. Install that version, or choose another folder."
            )
        tasks, origins = document["tasks"], document["origins"]
        if not all(isinstance(each, str) for each in (*tasks, *tasks.values(), *origins)):
            raise TypeError("a name that is no text")
        return dict(tasks), {_kept(each, path.parent) for each in origins}
    except FileNotFoundError:
        return {}, set()
    except UnreadableError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(
            f"`{path}` should say which tasks the study is about. Found something else. Restore the "
            "file from a copy, or move it away: it is written again."
        ) from error


def _kept(origin: str, folder: Path) -> str:
    """Of a path a hash of the way from the study: it may be handed on, or moved with its tasks."""
    if not Path(origin).is_absolute():
        return origin
    try:
        way = Path(os.path.relpath(origin, folder.resolve())).as_posix()
    except ValueError:  # another drive of Windows
        way = origin
    return f"folder {hashlib.sha256(way.encode()).hexdigest()[:16]}"


def _write(path: Path, tasks: Mapping[str, str], origins: set[str]) -> None:
    document = {"format": FORMAT, "tasks": dict(tasks), "origins": sorted(origins)}
    write_bytes(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def _some(names: list[str]) -> str:
    more = len(names) - 5
    return ", ".join(f"`{name}`" for name in names[:5]) + (f" and {more} more" if more > 0 else "")
