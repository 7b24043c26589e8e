"""How much a file may become when it is unpacked: a ratio to its size, and a share of free memory.

A bomb is a small file that becomes a large one. What tells it from honest data is the ratio of the two,
and only where there is enough of it to do harm:

| bytes that reading has taken so far      | what happens                                   |
|------------------------------------------|------------------------------------------------|
| up to 1/80 of the free memory            | nothing is asked                               |
| more, and over 200 times the file's size | refused: a bomb, or a file to be unpacked first |
| over half of the free memory             | refused, whatever the ratio                    |

Text is counted as it is unpacked; as a table, a cell of one character takes five bytes, so a refusal
comes at about 1/16 of the free memory, and before a tenth. Of the data we know, text becomes 3 to 12
times its size, a table of 0 and 1 in which ones are rare 100 times, and deflate gives at most 1032 times.
A constant column of a Parquet file may exceed every ratio, but is small. Whoever means a larger file says
so by a limit in bytes, which takes the place of both rules, or unpacks it: a plain file has the ratio 1.

Everything is checked while reading, with what is known by then, never by what a file says of itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from taskmix.files._atomic import UnreadableError
from taskmix.files._memory import free_memory

RATIO = 200
UNASKED = 80  # a part of the free memory
LARGEST = 2
LINE_SHARE = 100  # a row is held several times while it is read
LINE_LIMIT = 64 * 2**20


class Allowance:
    """What the reading of one file may take."""

    def __init__(self, path: Path, packed: int, *, limit: int | None = None) -> None:
        self.path = path
        self.packed = packed
        self.limit = limit
        self.free = free_memory()
        self.line = min(LINE_LIMIT, max(self.free // LINE_SHARE, 2**16))  # bytes of a row

    @property
    def unasked(self) -> int:
        """Bytes that are taken without a question."""
        return self.limit if self.limit is not None else self.free // UNASKED

    def check(self, taken: int) -> None:
        """Raises where reading has taken, or is about to take, too many bytes."""
        problem = self.problem(taken)
        if problem is not None:
            self.refuse(*problem)

    def problem(self, taken: int) -> tuple[str, str, str] | None:
        """What should hold of so many bytes, what was found and what to do; None if all is well."""
        if taken <= self.unasked:
            return None
        if self.limit is not None:
            return (
                f"A file should have at most {self.limit} uncompressed bytes.",
                "more",
                "Split the file, or raise {option} if it is meant to be so large.",
            )
        found = f"at least {taken:,} bytes from {self.packed:,}"
        if taken > RATIO * max(self.packed, 1):
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
