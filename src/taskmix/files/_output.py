"""Where a command may write: looked at before any work is done, so that nothing is lost at its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from taskmix.errors import InputError, RecordError
from taskmix.files._plain import open_plain

LOOKED_AT = 1 << 16  # bytes of a file that say whether it is ours


def check_output(
    path: Path,
    *,
    is_ours: Callable[[bytes], bool],
    what: str,
    remedy: str = "Choose another name, or move the file away.",
) -> None:
    """Raises unless `path` is free, or a plain file whose first bytes `is_ours` knows to be ours.

    `what` says what will be written, as in "the plan".

    >>> from pathlib import Path
    >>> check_output(Path("plan.json"), is_ours=has_keys("version"), what="the plan")
    >>> Path("plan.json").write_text("my own plan")
    11
    >>> check_output(Path("plan.json"), is_ours=has_keys("version"), what="the plan")
    Traceback (most recent call last):
    taskmix.errors.InputError: The plan should be written to a new file, or over one ...
    """
    above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not above.is_dir():
        raise InputError(
            f"{_begin(what)} should be written into a folder. Found that `{above}` is a file. Choose "
            "another path."
        )
    if not os.path.lexists(path):
        return
    if path.is_dir():
        raise InputError(
            f"{_begin(what)} should be written to a file. Found the folder `{path}`. Give the name of "
            "a file."
        )
    try:
        with open_plain(path) as file:
            known = not path.is_symlink() and is_ours(file.read(LOOKED_AT))
    except (RecordError, OSError, ValueError):  # ValueError: not even text, or no Parquet
        known = False
    if not known:
        raise InputError(
            f"{_begin(what)} should be written to a new file, or over one that taskmix wrote. Found "
            f"another file at `{path}`. {remedy}"
        )


def check_output_folder(path: Path, *, is_ours: Callable[[Path], bool], what: str) -> None:
    """Raises unless `path` is missing, an empty folder, or one that `is_ours` knows to be ours.

    >>> from pathlib import Path
    >>> make_folder(Path("home"))
    >>> check_output_folder(Path("home"), is_ours=lambda path: False, what="the study")
    >>> Path("home/thesis.txt").touch()
    >>> check_output_folder(Path("home"), is_ours=lambda path: False, what="the study")
    Traceback (most recent call last):
    taskmix.errors.InputError: The study should be written into a folder that is new, empty ...
    """
    above = next(
        each for each in (path.absolute(), *path.absolute().parents) if os.path.lexists(each)
    )
    if not above.is_dir():
        raise InputError(
            f"{_begin(what)} should be written into a folder. Found that `{above}` is a file. Choose "
            "another folder."
        )
    try:
        if path.is_dir() and any(path.iterdir()) and not is_ours(path):
            raise InputError(
                f"{_begin(what)} should be written into a folder that is new, empty or its own. Found "
                f"other files in `{path}`. Choose another folder."
            )
    except OSError as error:
        raise InputError(
            f"`{path}` should be a folder that can be read. Found: {error.strerror}."
        ) from error


def check_outside(path: Path, data: Path, *, what: str) -> None:
    """Raises where `path` is `data` itself, or lies in it: what we write is no task of the user's.

    >>> from pathlib import Path
    >>> make_folder(Path("data"))
    >>> check_outside(Path("study"), Path("data"), what="the study")
    >>> check_outside(Path("data/study"), Path("data"), what="the study")
    Traceback (most recent call last):
    taskmix.errors.InputError: The study should be written outside the data. ...
    """
    if data.is_dir() and path.resolve().is_relative_to(data.resolve()):
        raise InputError(
            f"{_begin(what)} should be written outside the data. Found `{path}` in the task folder "
            f"`{data}`. Choose a folder elsewhere."
        )


def has_keys(*keys: str) -> Callable[[bytes], bool]:
    """Knows a JSON object by keys among its first ones, without reading all of it.

    >>> is_plan = has_keys("version", "parts")
    >>> (is_plan(b'{"version": 2, "parts": []}'), is_plan(b'{"version": 2}'))
    (True, False)
    """

    def is_ours(begin: bytes) -> bool:
        return begin.lstrip()[:1] == b"{" and all(f'"{key}":'.encode() in begin for key in keys)

    return is_ours


def _begin(words: str) -> str:
    return words[:1].upper() + words[1:]
