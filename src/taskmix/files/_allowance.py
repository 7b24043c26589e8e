"""How much a file may become when it is unpacked: a ratio to its size, and a share of free memory.

A bomb is a small file that becomes a large one. What tells it from honest data is the ratio of the two,
and only where there is enough of it to do harm:

| bytes that reading has taken so far                     | what happens                 |
|---------------------------------------------------------|------------------------------|
| up to 1/100 of the free memory, or 1/20 as a table      | nothing is asked             |
| more, and over 200 times the size of the file           | refused: it may be a bomb    |
| over half of the free memory                            | refused, whatever the ratio  |

Text is counted as it is unpacked. As a table, a cell of one character takes five bytes, so the refusal
comes at about 1/16 of the free memory, and before a tenth; where the table itself is counted, at 1/20.
Of the data we know, text becomes 2 to 12 times its size, logs and tables of rare ones up to 100 times;
deflate gives at most 1032 times. A constant column of a Parquet file exceeds every ratio, but is small.
Whoever means a larger file says so by a limit in bytes, which takes the place of both rules, or unpacks
it: a plain file has the ratio 1.

Everything is checked while reading, with what is known by then, never by what a file says of itself.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NoReturn

from taskmix.files._atomic import UnreadableError

RATIO = 200
UNASKED_TEXT, UNASKED_TABLE = 100, 20  # parts of the free memory
LARGEST = 2
LINE_SHARE = 100  # a row is held several times while it is read
LINE_LIMIT = 64 * 2**20
_GROUPS = (  # a container's limit and what it has taken of it, in the two ways Linux tells them
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


class Allowance:
    """What the reading of one file may take.

    >>> from pathlib import Path
    >>> allowance = Allowance(Path("rows.csv.gz"), packed=100, limit=1000)
    >>> allowance.check(900)
    >>> allowance.check(1001)
    Traceback (most recent call last):
    taskmix.files._atomic.UnreadableError: A file should have at most 1000 uncompressed bytes. ...
    """

    def __init__(
        self, path: Path, packed: int, *, limit: int | None = None, is_table: bool = False
    ) -> None:
        self.path = path
        self.packed = packed
        self.limit = limit
        self.free = free_memory()
        self._share = UNASKED_TABLE if is_table else UNASKED_TEXT
        self.line = min(LINE_LIMIT, max(self.free // LINE_SHARE, 2**16))  # bytes of a row

    @property
    def unasked(self) -> int:
        """Bytes that are taken without a question."""
        return self.limit if self.limit is not None else self.free // self._share

    def check(self, taken: int, *, packed: int | None = None) -> None:
        """Raises where reading has taken, or is about to take, too many bytes.

        `packed` is how many bytes of the file they came from, where that is known.
        """
        problem = self.problem(taken, self.packed if packed is None else packed)
        if problem is not None:
            self.refuse(*problem)

    def problem(self, taken: int, packed: int | None = None) -> tuple[str, str, str] | None:
        """What should hold of so many bytes, what was found and what to do; None if all is well."""
        packed = self.packed if packed is None else packed
        if taken <= self.unasked:
            return None
        if self.limit is not None:
            return (
                f"A file should have at most {self.limit} uncompressed bytes.",
                "more",
                "Split the file, or raise {option} if it is meant to be so large.",
            )
        found = f"at least {taken:,} bytes from {packed:,}"
        if taken > RATIO * max(packed, 1):
            return (
                f"A file should not unpack to more than {RATIO} times its size, or stay below "
                f"{self.unasked:,} bytes.",
                found,
                "If it is meant to be so, and no decompression bomb, unpack it first, or give {option}.",
            )
        if taken > self.free // LARGEST:
            return (
                f"A file should take at most half of the free memory, {self.free // LARGEST:,} bytes.",
                found,
                "Split the file, take a machine with more memory, or give {option}.",
            )
        return None

    def refuse(self, should: str, found: str, remedy: str) -> NoReturn:
        """Raises the sentence; those who have an error of their own, or an option, override it."""
        remedy = remedy.replace(", or give {option}", "")
        raise UnreadableError(f"{should} Found {found} in `{self.path}`. {remedy}", found=found)


def free_memory() -> int:
    """Bytes that a program may still take, about: of the machine, or of the container it is in.

    >>> free_memory() > 2**20
    True
    """
    free = _of_the_machine()
    for limit, taken in _GROUPS:
        # No such file, or the word `max` in it: then there is no such limit.
        with contextlib.suppress(OSError, ValueError):
            free = min(free, int(Path(limit).read_text()) - int(Path(taken).read_text()))
    return max(free, 0)


def _of_the_machine() -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    try:  # no Linux: half of what there is
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 1 << 32
