"""Where a command may write: looked at before any work is done, so that nothing is lost at its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from taskmix.errors import InputError, RecordError
from taskmix.files._plain import open_plain

LOOKED_AT = 1 << 16  # bytes of a file that say whether it is ours


def check_output(path: Path, *, is_ours: Callable[[bytes], bool], what: str) -> None:
    """Raises unless `path` is free, or a plain file whose first bytes `is_ours` knows to be ours.

    `what` says what will be written, as in "the plan".
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
    except (RecordError, OSError):
        known = False
    if not known:
        raise InputError(
            f"{_begin(what)} should be written to a new file, or over one that taskmix wrote. Found "
            f"another file at `{path}`. Choose another name, or move the file away."
        )


def check_output_folder(path: Path, *, is_ours: Callable[[Path], bool], what: str) -> None:
    """Raises unless `path` is missing, an empty folder, or one that `is_ours` knows to be ours."""
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


def _begin(words: str) -> str:
    return words[:1].upper() + words[1:]
