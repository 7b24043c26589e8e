"""Files that are whole or not there at all.

A file is written aside under a hidden name of its own, flushed to the disk and renamed over the old
one, so a kill, a power cut or a full disk leaves either the old content or the new. Everything in
taskmix that changes a disk goes through the functions here: the tests end the process at each of
their calls.

Nothing of ours deletes a file that it did not write. `delete` is the only place that deletes: it is
told how to know our files, and what it does not know it leaves alone and says so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taskmix._signals import grace
from taskmix.errors import RecordError

FULL = {errno.ENOSPC, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP}  # some network file systems cannot flush a folder
BUFFER = 1 << 20  # bytes; what is smaller is written together


class UnreadableError(RecordError):
    """A file that is there and cannot be read; `found` is for sentences that say more of it.

    >>> UnreadableError("`plan.json` should be readable.", found="a folder").found
    'a folder'
    """

    def __init__(self, sentence: str, *, found: str) -> None:
        super().__init__(sentence)
        self.found = found


@dataclass
class Sink:
    """Takes the bytes of a file being written and counts and sums them on the way.

    >>> from pathlib import Path
    >>> with replacing(Path("rows.bin")) as sink:
    ...     sink.write(b"abc")
    3
    >>> (sink.size, f"{sink.crc32:08x}")
    (3, '352441c2')
    """

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

    >>> from pathlib import Path
    >>> write_bytes(Path("plan.json"), b"old")
    >>> with replacing(Path("plan.json")) as sink:
    ...     sink.write(b"new") and Path("plan.json").read_bytes()
    b'old'
    >>> Path("plan.json").read_bytes()
    b'new'
    """
    with grace():  # a signal waits for the moment this takes, lest the file aside stay there
        aside = _new_name(path)
        try:
            descriptor = os.open(aside, _CREATE, 0o666)
        except OSError as error:  # nothing was made, so nothing is to be deleted
            raise unwritable(error, path) from error
        sink = Sink(descriptor)
        try:
            try:
                yield sink
                sink.drain()
                os.fsync(descriptor)
            finally:
                sink.descriptor = None
                os.close(descriptor)
            os.replace(aside, path)  # noqa: PTH105 - by way of `os` here, for the tests' sake
        except BaseException as error:
            with contextlib.suppress(OSError, RecordError):
                delete(aside, is_ours=is_temporary)
            if isinstance(error, OSError):
                raise unwritable(error, path) from error
            raise
        if sync:
            sync_folder(path.parent)


def write_bytes(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Writes a whole file at once.

    >>> from pathlib import Path
    >>> write_bytes(Path("plan.json"), b"{}")
    >>> list_folder(Path("."))
    ['plan.json']
    """
    with replacing(path, sync=sync) as sink:
        sink.write(data)


@contextmanager
def making_folder(path: Path) -> Iterator[Path]:
    """Gives a new folder that becomes `path`, a missing or empty one, once the block ends well.

    >>> from pathlib import Path
    >>> with making_folder(Path("model")) as folder:
    ...     write_bytes(folder / "weights", b"12")
    ...     Path("model").exists()
    False
    >>> list_folder(Path("model"))
    ['weights']
    """
    make_folder(path.parent)
    with grace():  # as above
        aside = _new_name(path)
        try:
            os.mkdir(aside)  # noqa: PTH102
        except OSError as error:
            raise unwritable(error, path) from error
        try:
            yield aside
            os.rename(aside, path)  # noqa: PTH104 - over an empty folder, never over one with content
        except BaseException as error:
            with contextlib.suppress(OSError, RecordError):
                delete(aside, is_ours=is_temporary)
            if isinstance(error, OSError):
                raise unwritable(error, path) from error
            raise
        sync_folder(path.parent)


def delete(path: Path, *, is_ours: Callable[[Path], bool]) -> None:
    """Deletes a file, or a folder with all that is in it; what is gone already is as good.

    Everything has to be known to `is_ours` before anything is deleted. A link is deleted, never
    followed. Folders go only where they have become empty.

    >>> from pathlib import Path
    >>> write_bytes(Path("run.json"), b"{}")
    >>> delete(Path("run.json"), is_ours=lambda path: path.suffix == ".json")
    >>> Path("thesis.txt").touch()
    >>> delete(Path("thesis.txt"), is_ours=lambda path: path.suffix == ".json")
    Traceback (most recent call last):
    taskmix.errors.RecordError: Only files that taskmix wrote should be in the way. Found ...
    """
    try:
        files, folders = _tree(path)
        stranger = next((file for file in files if not is_ours(file)), None)
        if stranger is not None:
            raise RecordError(
                f"Only files that taskmix wrote should be in the way. Found `{stranger}`. Move it "
                "away, or choose another folder; nothing was deleted."
            )
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file)  # noqa: PTH108
        for folder in folders:
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(folder)  # noqa: PTH106
    except OSError as error:
        raise unwritable(error, path) from error


def _tree(path: Path) -> tuple[list[Path], list[Path]]:
    """Everything at and below a path that is no folder, and the folders, the inner ones first."""
    if not stat.S_ISDIR(_mode(path)):
        return [path], []
    files: list[Path] = []
    folders: list[Path] = []
    for name in list_folder(path):
        inner_files, inner_folders = _tree(path / name)
        files += inner_files
        folders += inner_folders
    return files, [*folders, path]


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return 0


def is_temporary(path: Path) -> bool:
    """Whether this is, or lies in, something of ours that was being written.

    Such names are drawn at random and made exclusively, so nobody else has one.

    >>> from pathlib import Path
    >>> is_temporary(Path(".taskmix-0123456789abcdef.tmp"))
    True
    >>> is_temporary(Path("notes.tmp"))
    False
    """
    return any(_TEMPORARY.fullmatch(part) for part in path.parts)


def remove_stale(folder: Path) -> None:
    """Deletes what killed processes were writing; the caller holds the folder's lock.

    >>> from pathlib import Path
    >>> Path(".taskmix-0123456789abcdef.tmp").touch()
    >>> Path("notes.tmp").touch()
    >>> remove_stale(Path("."))
    >>> list_folder(Path("."))
    ['notes.tmp']
    """
    for name in list_folder(folder):
        if _TEMPORARY.fullmatch(name):
            delete(folder / name, is_ours=is_temporary)


def make_folder(path: Path) -> None:
    """Creates a folder and those above it where they are missing.

    >>> from pathlib import Path
    >>> make_folder(Path("study/run"))
    >>> list_folder(Path("study"))
    ['run']
    """
    if path.is_dir():
        return
    try:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
    except OSError as error:
        raise unwritable(error, path) from error
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Flushes a folder's list of names to the disk.

    >>> from pathlib import Path
    >>> write_bytes(Path("a"), b"1", sync=False)
    >>> write_bytes(Path("b"), b"2", sync=False)
    >>> sync_folder(Path("."))  # once for both
    """
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
    """The names in a folder, sorted; none where there is no folder.

    >>> from pathlib import Path
    >>> write_bytes(Path("b"), b"2")
    >>> write_bytes(Path("a"), b"1")
    >>> (list_folder(Path(".")), list_folder(Path("nowhere")))
    (['a', 'b'], [])
    """
    try:
        return sorted(os.listdir(path))  # noqa: PTH208
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(error, path) from error


def unwritable(error: OSError, path: Path) -> RecordError:
    """The error of a file that cannot be written, as a sentence."""
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


def unreadable(error: OSError, path: Path) -> UnreadableError:
    """The error of a file that is there and cannot be read, as a sentence.

    >>> from pathlib import Path
    >>> print(unreadable(PermissionError(13, "Permission denied"), Path("rows.csv")))
    `rows.csv` should be readable. Found: Permission denied. Check its permissions and the disk.
    """
    reason = error.strerror or str(error)
    return UnreadableError(
        f"`{path}` should be readable. Found: {reason}. Check its permissions and the disk.",
        found=f"no readable file ({reason})",
    )


def _new_name(path: Path) -> Path:
    return path.with_name(f".taskmix-{secrets.token_hex(8)}.tmp")


_TEMPORARY = re.compile(r"\.taskmix-[0-9a-f]{16}\.tmp")

# Windows would translate line ends; a name that is taken, by a file or a link, is refused.
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
