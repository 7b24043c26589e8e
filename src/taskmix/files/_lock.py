"""One writer for each run, in any process on any machine that shares the disk.

The lock belongs to an open file, so the kernel releases it with the process, however that ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taskmix.errors import RecordError
from taskmix.files._atomic import unwritable
from taskmix.files._plain import read_plain

LONGEST_NOTE = 1000  # bytes

_held: set[int] = set()


@contextmanager
def holding(path: Path, *, note: str | None = None) -> Iterator[bool]:
    """Holds the lock file `path` for the block; gives False, at once, where another holds it.

    A `note` is written into the file, for whoever finds it held (`read_note`).

    >>> from pathlib import Path
    >>> with holding(Path(".lock")) as mine, holding(Path(".lock")) as another:
    ...     (mine, another)
    (True, False)
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise unwritable(error, path) from error
    _held.add(descriptor)
    try:
        locked = _is_locked(descriptor, path)
        if locked and note is not None:
            _write_note(descriptor, path, note)
        yield locked
    finally:
        if descriptor in _held:  # not so in a forked worker, whose number may be another file's
            _held.remove(descriptor)
            os.close(descriptor)


def read_note(path: Path) -> str | None:
    """What the holder of a lock says of itself; None where it has said nothing that can be read.

    >>> from pathlib import Path
    >>> with holding(Path(".lock"), note="process 7, since noon"):
    ...     read_note(Path(".lock"))
    'process 7, since noon'
    """
    try:
        words = read_plain(path, limit=LONGEST_NOTE).decode()
    except (RecordError, OSError, UnicodeDecodeError):
        return None
    return words.strip() or None


def _write_note(descriptor: int, path: Path, note: str) -> None:
    # In its place: a new file under this name would not be the one that is locked.
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, note.encode()[:LONGEST_NOTE])
    except OSError as error:
        raise unwritable(error, path) from error


def _is_locked(descriptor: int, path: Path) -> bool:
    try:
        _lock(descriptor)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:  # a file system without locks
        raise unwritable(error, path) from error
    return True


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _forget() -> None:
        # A worker that outlives its killed parent would otherwise keep the parent's locks.
        for descriptor in _held:
            os.close(descriptor)
        _held.clear()

    os.register_at_fork(after_in_child=_forget)
