"""Files for people, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from taskmix.errors import InputError, RecordError
from taskmix.files import check_output, make_folder, write_bytes

MARK = "taskmix"  # stands in each file for people that we write, so that we know it again


def is_our_page(begin: bytes) -> bool:
    """Whether a page, or a chart, is one that we wrote, by its first bytes."""
    return (
        f'name="generator" content="{MARK}'.encode() in begin
        or f"Software\0{MARK}".encode() in begin
    )


def write_whole(path: Path, content: bytes, what: str) -> Path:
    """Writes aside and renames: whoever has the file open, or kills us, sees a whole one."""
    check_output(path, is_ours=is_our_page, what=what)
    try:
        make_folder(path.parent)
        write_bytes(path, content)
    except (OSError, RecordError) as error:
        reason = getattr(error.__cause__ or error, "strerror", None) or error
        raise InputError(
            f"`{path}` should be a place to write {what} to. Found: {reason}. Choose another."
        ) from error
    return path
