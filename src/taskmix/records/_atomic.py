"""Files that are whole or not there at all.

A file is written aside under a hidden name, flushed to the disk and renamed over the old one, so a
kill, a power cut or a full disk leaves either the old content or the new. Everything in this package
that changes a disk goes through the functions here: the tests end the process at each of their calls.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskmix.errors import RecordError

FULL = {errno.ENOSPC, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP}  # some network file systems cannot flush a folder
BUFFER = 1 << 20  # bytes; what is smaller is written together


class DamageError(RecordError):
    """What lies on the disk is not what was written. Any other `RecordError` may pass by itself."""


@dataclass
class Sink:
    """Takes the bytes of a file being written and counts and sums them on the way."""

    descriptor: int | None
    size: int = 0
    crc32: int = 0
    closed: bool = False
    waiting: bytearray = field(default_factory=bytearray)

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self.crc32 = zlib.crc32(view, self.crc32)
        self.size += view.nbytes
        if view.nbytes < BUFFER:
            self.waiting += view
        if view.nbytes >= BUFFER or len(self.waiting) >= BUFFER:
            self.drain()
        if view.nbytes >= BUFFER:
            self._put(view)
        return view.nbytes

    def overwrite(self, place: int, data: bytes) -> None:
        """Fills in what was only known at the end; it stays out of the sum."""
        self.drain()
        if self.descriptor is not None:
            os.lseek(self.descriptor, place, os.SEEK_SET)
        self._put(memoryview(data))

    def drain(self) -> None:
        """Hands the small pieces on together."""
        waiting, self.waiting = self.waiting, bytearray()
        self._put(memoryview(waiting))

    def _put(self, view: memoryview) -> None:
        # A Parquet writer that failed still writes its footer when it is collected: by then the
        # number of the descriptor may be another file's, so an abandoned sink takes nothing.
        while view.nbytes and self.descriptor is not None:  # a call takes at most 2 GiB
            view = view[os.write(self.descriptor, view) :]

    # What Arrow asks of a file besides.
    def tell(self) -> int:
        return self.size

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True


@contextmanager
def replacing(path: Path, *, sync: bool = True) -> Iterator[Sink]:
    """Gives a sink whose bytes are the content of `path` once the block ends well.

    Without `sync` the name may be forgotten at a power cut, not the content: the caller flushes the
    folder once for several files with `sync_folder`.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o666)
        sink = Sink(descriptor)
        try:
            yield sink
            sink.drain()
            os.fsync(descriptor)
        finally:
            sink.descriptor = None
            os.close(descriptor)
        os.replace(aside, path)  # noqa: PTH105 - by way of `os` here, for the tests' sake
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # noqa: PTH108
        if isinstance(error, OSError):
            raise unwritable(error, path) from error
        raise
    if sync:
        sync_folder(path.parent)


def write_bytes(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Writes a whole file at once."""
    with replacing(path, sync=sync) as sink:
        sink.write(data)


def read_bytes(path: Path) -> bytes:
    """Reads a whole file; a missing one is a `FileNotFoundError`."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(error, path) from error


def remove(path: Path) -> None:
    """Deletes a file; one that is gone already is as good."""
    try:
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(error, path) from error


def make_folder(path: Path) -> None:
    """Creates a folder and those above it where they are missing."""
    if path.is_dir():
        return
    try:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
    except OSError as error:
        raise unwritable(error, path) from error
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Flushes a folder's list of names to the disk."""
    if sys.platform == "win32":  # which has no call for it
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise unwritable(error, path) from error


def list_folder(path: Path) -> list[str]:
    """The names in a folder, sorted; none where there is no folder."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(error, path) from error


def remove_stale(folder: Path) -> None:
    """Deletes what killed processes were writing; the caller holds the folder's lock."""
    for name in list_folder(folder):
        if name.startswith(".") and name.endswith(".tmp"):
            remove(folder / name)


def unwritable(error: OSError, path: Path) -> RecordError:
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return RecordError(
            f"There should be room on the disk to write `{path}`. Found: {reason}. Free some space "
            "and run again; everything that was complete is kept."
        )
    if error.errno in FORBIDDEN:
        return RecordError(
            f"`{path.parent}` should be a folder that can be written to. Found: {reason}. Change its "
            "permissions or choose another folder; everything that was complete is kept."
        )
    return RecordError(
        f"`{path}` should be writable. Found: {reason}. Check the disk and the path, then run again; "
        "everything that was complete is kept."
    )


def unreadable(error: OSError, path: Path) -> RecordError:
    reason = error.strerror or str(error)
    return RecordError(
        f"`{path}` should be readable. Found: {reason}. Check its permissions and the disk."
    )


# Windows would translate line ends; elsewhere a link of that name, put there by another, is not
# followed to the file it points to.
_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
