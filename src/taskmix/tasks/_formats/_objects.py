"""The bytes of JSON lines, looked at before Arrow's reader is given them.

Arrow's reader (26.0) ends the process, instead of raising, on a block that begins with `null` and on
some thousands of nested brackets. Lines that might do so are kept from it.

A table has a cell for every key in every row, so rows that all have keys of their own become far more
than they were. Keys are counted on the way, roughly, as never too few; where that is too much, the
second reading counts exactly, and refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.files import Allowance
from taskmix.tasks._formats._streams import CheckedStream

DEPTH_LIMIT = 500  # of nesting, also counting brackets that are part of a text
_BYTES_OF_CELL = 8  # bytes, of a number or of where a text ends
_BYTES_OF_COLUMN = 4096  # bytes of a column however few rows it has
# Bytes that Python takes for a list, an object, or an item of either.
_BYTES_OF_SIGN = ((b"[", 64), (b"{", 240), (b",", 48))
_LONGEST_KEY = 2**16  # bytes; longer ones are too few to do harm
_MOST_USUAL_KEYS = 8  # keys that are looked for one by one
_SPACED_COLON = re.compile(rb'"[ \t\r]+:')
_BRACE, _LINE_FEED, _RETURN = b"{\n\r"
_NESTED_SIGNS = (b":{", b"[{", b" {", b"\t{", b"\r{")  # where an object in an object may begin


class OddRowError(Exception):
    """A row that Arrow should not see; `read_jsonl` then reads in Python."""


class ObjectStream(CheckedStream):
    """A text file whose rows, as far as can be seen from outside, are blank or one object."""

    objects = 0  # rows that begin with a brace
    _at_start = True  # of a row
    _depth = 0  # open brackets of the row that is not yet ended
    _open_row = b""  # so far
    _open_key = b""  # what follows the last key, and may be the beginning of another

    def __init__(
        self, path: Path, *, byte_limit: int | None = None, remarks: list[str] | None = None
    ) -> None:
        super().__init__(path, byte_limit=byte_limit, remarks=remarks)
        self._keys: set[int] = set()  # their hashes
        self._usual: set[bytes] = set()  # those of the first block, where they are few

    def check(self, block: bytes) -> None:
        super().check(block)
        if block:
            data = np.frombuffer(block, dtype=np.uint8)
            self._check_starts(data, block)
            self._check_nesting(data)
            self._check_keys(block)

    def _check_keys(self, block: bytes) -> None:
        """Count keys as never too few: `":` ends one, and what is too much costs a closer look."""
        rows, _, self._open_row = (self._open_row + block).rpartition(b"\n")
        if any(word in rows for word in _NESTED_SIGNS):
            self._keys.update(_inner_keys(rows, self.allowance))
        text = self._open_key + block
        if b'" ' in text or b'"\t' in text or b'"\r' in text:  # blanks before a colon are rare
            text = _SPACED_COLON.sub(b'":', text)
        self._open_key = text[text.rfind(b'":') + 1 :][-_LONGEST_KEY:]
        is_plain = b'\\"' not in text
        usual = sum(text.count(key + b'":') for key in self._usual) if is_plain else -1
        if usual != text.count(b'":'):  # mostly they are equal, which is quick to see
            found = set(_keys_in(text.split(b'":')[:-1], is_plain=is_plain))
            self._keys.update(map(hash, found))
            self._usual = self._usual or (found if len(found) <= _MOST_USUAL_KEYS else set())
        if self.allowance.problem(table_bytes(len(self._keys), self.objects)) is not None:
            raise OddRowError

    def _check_starts(self, data: NDArray[np.uint8], block: bytes) -> None:
        starts = np.flatnonzero(data[:-1] == _LINE_FEED) + 1
        if self._at_start:
            starts = np.concatenate(([0], starts))
        self._at_start = block.endswith(b"\n")
        first = data[starts]
        objects = int(np.count_nonzero(first == _BRACE))
        blank = int(np.count_nonzero((first == _LINE_FEED) | (first == _RETURN)))
        # Arrow ends rows, and so blocks, at a lone carriage return too.
        if objects + blank < len(starts) or block.count(b"\r") != block.count(b"\r\n"):
            raise OddRowError
        self.objects += objects

    def _check_nesting(self, data: NDArray[np.uint8]) -> None:
        """Brackets inside text count too: this may only suspect, the slow reader decides.

        Depth is the rise above the lowest point so far of the row, because closing brackets inside
        a text must not hide opening ones behind it.
        """
        folded = data | 0x20  # `[` and `{` differ in this bit only, and so do `]` and `}`
        opening, closing, row_end = folded == 0x7B, folded == 0x7D, data == _LINE_FEED
        places = np.flatnonzero(opening | closing | row_end)
        # Before the block comes the end of the last row, and then what is open of this one.
        steps = np.concatenate(
            ([0, self._depth], opening[places].astype(np.int64) - closing[places])
        )
        ends = np.concatenate(([True, False], row_end[places]))
        depth = np.cumsum(steps)
        depth -= depth[np.maximum.accumulate(np.where(ends, np.arange(len(ends)), 0))]
        # Later rows are moved far down, so that the minimum starts afresh in each of them.
        down = np.cumsum(ends) << 32
        rise = depth - (np.minimum.accumulate(depth - down) + down)
        if rise.max() > DEPTH_LIMIT:
            raise OddRowError
        self._depth = int(rise[-1])


def table_bytes(keys: int, rows: int) -> int:
    """Bytes of a table."""
    return keys * (_BYTES_OF_COLUMN + _BYTES_OF_CELL * rows)


def _is_escaped(before: bytes) -> bool:
    """Whether what comes next is part of a text: an odd number of backslashes precedes it."""
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def _keys_in(pieces: Sequence[bytes], *, is_plain: bool) -> Iterable[bytes]:
    """What stands between quotes before the ends of pieces, some of which may be inside of texts."""
    if is_plain:
        return {piece[piece.rfind(b'"') :] for piece in pieces}
    keys = (piece[piece.rfind(b'"') :] for piece in pieces)
    # A key with an escaped quote in it: more than the key is taken, never less.
    return {
        piece if _is_escaped(piece[: len(piece) - len(key)]) else key
        for piece, key in zip(pieces, keys, strict=True)
        if not _is_escaped(piece)
    }


def _inner_keys(lines: bytes, bounds: Allowance) -> Iterator[int]:
    """Hashes of the paths to all keys of objects inside the rows' objects."""
    for line in lines.split(b"\n"):
        if any(word in line for word in _NESTED_SIGNS):
            bounds.check(python_bytes(line))
            try:
                yield from inner_paths(json.loads(line))
            except (ValueError, RecursionError):
                raise OddRowError from None


def inner_paths(row: Any) -> Iterator[int]:
    """One number for each way from the row to a key that is not its own."""
    waiting = [(value, hash(key)) for key, value in row.items()] if isinstance(row, dict) else []
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, list):
            waiting += [(item, place) for item in value if isinstance(item, dict | list)]
        elif isinstance(value, dict):
            for key, item in value.items():
                yield hash((place, key))
                waiting.append((item, hash((place, key))))


def python_bytes(line: bytes) -> int:
    """What a row takes in Python, about."""
    return len(line) + sum(size * line.count(word) for word, size in _BYTES_OF_SIGN)
