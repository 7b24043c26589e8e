"""The folder of a trained model: replaced at one moment, and only if it is ours.

Every model that is saved draws a mark, which is in the names of its files; `model.json` lists them and
is replaced last. So a kill at any moment leaves the old model or the new one. Then the files that only
the old `model.json` lists are deleted, and what killed processes left. Nothing else in the folder is
touched, and a folder of something else is refused.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taskmix.errors import RecordError
from taskmix.files import (
    check_output_folder,
    delete,
    holding,
    is_temporary,
    list_folder,
    make_folder,
    read_plain,
    write_bytes,
)

NAME = "model.json"
LOCK = ".lock"
MARKED = re.compile(r"(model|encoder|adapter|merged)[0-9]+-[0-9a-f]{16}(\.safetensors)?")
UNMARKED = re.compile(r"model[0-9]+\.safetensors")  # of version 0.1


def check_model_folder(folder: Path) -> None:
    """Raises where a model cannot be kept in a folder because it is somebody else's."""
    check_output_folder(folder, is_ours=_is_ours, what="the trained model")


@contextmanager
def replacing_model(folder: Path) -> Iterator[tuple[str, Callable[[dict[str, Any]], None]]]:
    """Gives the mark for the names of new files, and a function that makes them the model.

    A block that fails leaves the old model, and none of the new files.
    """
    check_model_folder(folder)
    make_folder(folder)
    with holding(folder / LOCK) as held:
        if not held:
            raise RecordError(
                f"`{folder}` should have one writer. Found another process that keeps a model there. "
                "Wait until it is done, or choose another folder."
            )
        mark = secrets.token_hex(8)

        def publish(document: dict[str, Any]) -> None:
            before = _listed(folder)
            new = {name for name in _marked(folder) if mark in name.split("/")[0]}
            text = json.dumps(document | {"files": sorted(new)}, indent=1, ensure_ascii=False)
            write_bytes(folder / NAME, (text + "\n").encode())
            tops = {name.split("/")[0] for name in before | new}
            # Of what was listed only what is there: a list may have names that no file can have.
            there = _marked(folder) | set(list_folder(folder))
            _delete(folder, (before - new) & there)
            _delete(folder, {name for name in _marked(folder) if name.split("/")[0] not in tops})

        try:
            yield mark, publish
        except BaseException:
            if not any(mark in name for name in _listed(folder)):
                with contextlib.suppress(RecordError):
                    _delete(folder, {name for name in _marked(folder) if mark in name})
            raise


def _is_ours(folder: Path) -> bool:
    """Whether it has a model, or nothing but what a killed process left of one."""
    try:
        document = json.loads(read_plain(folder / NAME))
    except FileNotFoundError:
        return all(
            name == LOCK or MARKED.fullmatch(name) or is_temporary(Path(name))
            for name in list_folder(folder)
        )
    except (RecordError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"version", "models"} <= document.keys()


def _listed(folder: Path) -> set[str]:
    """The files, relative to the folder, that its `model.json` says are the model's."""
    try:
        document = json.loads(read_plain(folder / NAME))
        names = [*document.get("files", ()), *(each["file"] for each in document["models"])]
    except (
        OSError,
        RecordError,
        ValueError,
        RecursionError,
        LookupError,
        TypeError,
        AttributeError,
    ):
        return set()  # there is no model, or one of another kind: then none of its files is ours
    return {name for name in names if isinstance(name, str) and _is_name(name)}


def _is_name(name: str) -> bool:
    top, *inner = name.split("/")
    known = MARKED.fullmatch(top) or (not inner and UNMARKED.fullmatch(top))
    return known is not None and known is not False and ".." not in inner


def _marked(folder: Path) -> set[str]:
    """Every file in the folder whose name, or whose folder's name, has a mark."""
    found: set[str] = set()
    for name in list_folder(folder):
        if MARKED.fullmatch(name):
            path = folder / name
            inner = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
            found |= {
                each.relative_to(folder).as_posix()
                for each in inner
                if each.is_symlink() or not each.is_dir()
            }
    return found


def _delete(folder: Path, names: set[str]) -> None:
    """Deletes these files; a folder with somebody's own file in it stays, with that file."""
    for name in sorted(names):
        delete(folder / name, is_ours=lambda path: path.relative_to(folder).as_posix() in names)
    for top in sorted({name.split("/")[0] for name in names if "/" in name}):
        with contextlib.suppress(RecordError):
            delete(folder / top, is_ours=lambda path: False)  # only if it is empty
