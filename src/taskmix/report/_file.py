"""Files for people, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from taskmix.errors import InputError, RecordError
from taskmix.files import make_folder, write_bytes


def write_whole(path: Path, content: bytes, what: str) -> Path:
    """Writes aside and renames: whoever has the file open, or kills us, sees a whole one."""
    try:
        make_folder(path.parent)
        write_bytes(path, content)
    except (OSError, RecordError) as error:
        reason = getattr(error.__cause__ or error, "strerror", None) or error
        raise InputError(
            f"`{path}` should be a place to write {what} to. Found: {reason}. Choose another."
        ) from error
    return path
