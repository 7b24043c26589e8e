"""Files are read only if they are plain files of a size that can be held.

A pipe would wait for ever for somebody to write to it, a device never ends, and a sparse file of some
bytes on the disk may claim a terabyte. So a file is opened without waiting, looked at once it is open,
and never read beyond its limit, whatever it claims.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from pathlib import Path

from taskmix.files._atomic import UnreadableError, list_folder, unreadable

DOCUMENT_LIMIT = 256 * 2**20  # bytes; what we write ourselves as JSON is far smaller

_GROWN = 1 << 20  # bytes that are read at once of what was written since the file was looked at

# Without waiting for a writer of a pipe; a terminal does not become ours.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def open_plain(path: Path, *, limit: int | None = None) -> io.BufferedReader:
    """Opens a plain file, of at most `limit` bytes, to read; a missing one is a `FileNotFoundError`.

    >>> from pathlib import Path
    >>> write_bytes(Path("rows.csv"), b"a,b")
    >>> with open_plain(Path("rows.csv")) as file:
    ...     file.read()
    b'a,b'
    """
    try:
        descriptor = os.open(path, _READ | _BINARY)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(error, path) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            kind = _kind(found.st_mode)
            sentence = f"`{path}` should be a plain file. Found {kind}. Move it away."
            raise UnreadableError(sentence, found=f"no readable file ({kind})")
        if limit is not None and found.st_size > limit:
            raise _too_large(path, limit, found.st_size)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: Path, *, limit: int = DOCUMENT_LIMIT) -> bytes:
    """The whole of a plain file; a missing one is a `FileNotFoundError`.

    >>> from pathlib import Path
    >>> write_bytes(Path("rows.csv"), b"a,b")
    >>> read_plain(Path("rows.csv"))
    b'a,b'
    >>> read_plain(Path("rows.csv"), limit=2)
    Traceback (most recent call last):
    taskmix.files._atomic.UnreadableError: `rows.csv` should have at most 2 bytes. Found 3. ...
    """
    with open_plain(path, limit=limit) as file:
        try:
            # Not `limit` bytes at once: that much memory would be asked for, however small the file.
            data = file.read(os.fstat(file.fileno()).st_size + 1)
            while len(data) <= limit and (more := file.read(_GROWN)):
                data += more
        except OSError as error:
            raise unreadable(error, path) from error
    if len(data) > limit:  # it has grown since it was looked at
        raise _too_large(path, limit, len(data))
    return data


def check_plain(path: Path, *, limit: int | None = None) -> None:
    """Raises where a path is given to a library that opens files itself, and is no plain file.

    >>> from pathlib import Path
    >>> check_plain(Path("/dev/null"))
    Traceback (most recent call last):
    taskmix.files._atomic.UnreadableError: `/dev/null` should be a plain file. Found a device. ...
    """
    open_plain(path, limit=limit).close()


def check_plain_folder(folder: Path) -> None:
    """Raises where a folder is given to such a library, and a file in it is no plain one.

    >>> from pathlib import Path
    >>> make_folder(Path("model"))
    >>> Path("model/config.json").symlink_to("/dev/zero")
    >>> check_plain_folder(Path("model"))
    Traceback (most recent call last):
    taskmix.files._atomic.UnreadableError: `model/config.json` should be a plain file. Found ...
    """
    for name in list_folder(folder):
        if not (folder / name).is_dir():
            is_document = (folder / name).suffix in (".json", ".txt")
            with contextlib.suppress(FileNotFoundError):  # a link to nothing is no file
                check_plain(folder / name, limit=DOCUMENT_LIMIT if is_document else None)


def _too_large(path: Path, limit: int, size: int) -> UnreadableError:
    return UnreadableError(
        f"`{path}` should have at most {limit:,} bytes. Found {size:,}. Restore the file from a copy, "
        "or move it away.",
        found=f"{size:,} bytes, more than the {limit:,} that it may have",
    )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")
