"""Files for people, whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from taskmix.errors import InputError


def write_whole(path: Path, content: bytes, what: str) -> Path:
    """Writes aside and renames: whoever has the file open, or kills us, sees a whole one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(content)
        aside.replace(path)
    except OSError as error:
        raise InputError(
            f"`{path}` should be a place to write {what} to. Found: {error.strerror}. Choose another."
        ) from error
    finally:
        with contextlib.suppress(OSError):  # gone already, or never there
            aside.unlink()
    return path
