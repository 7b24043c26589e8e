"""The bytes of a task file, gunzipped, counted and checked while they go by.

Nothing larger than a block is held. What a file may become is an `Allowance` of `taskmix.files`, a ratio
and a share of free memory, and `byte_limit` takes their place where it is given.
Whatever is wrong with the bytes themselves (gzip, encoding, a NUL, an endless line) is said here, once,
for every text format; `rows` counts the line ends seen so far, so the sentence can name the row.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.files import Allowance, UnreadableError, open_plain
from taskmix.tasks._formats._encodings import NotTextError, TextDecoder
from taskmix.tasks._formats._words import bad_file

_BLOCK = 2**20


class FileAllowance(Allowance):
    """What the reading of a task file may take; `byte_limit` None is a ratio and a share of memory."""

    def refuse(self, should: str, found: str, remedy: str) -> NoReturn:
        bad_file(self.path, should, found, remedy.replace("{option}", "`byte_limit`"))


def allowance(path: Path, byte_limit: int | None, *, is_table: bool = False) -> FileAllowance:
    """For a file as large as it is now; one that cannot be read is told where it is opened."""
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        size = 0
    return FileAllowance(path, size, limit=byte_limit, is_table=is_table)


def arrow_file(stream: io.RawIOBase) -> pa.PythonFile:
    """A stream as Arrow reads it, to be closed by `with`.

    One that is left open is let go of by a thread of Arrow's, some time later; a process that ends in
    between, for instance with a sentence about the file, is aborted.
    """
    return pa.PythonFile(stream, mode="r")


class CheckedStream(io.RawIOBase):
    """A text file as a readable stream of valid UTF-8 without NUL, whatever it was saved in."""

    def __init__(
        self,
        path: Path,
        *,
        byte_limit: int | None = None,
        remarks: list[str] | None = None,  # gets what is to be noted of the encoding
        is_document: bool = False,  # which may stand in one line; what it takes is checked as a whole
    ) -> None:
        self.path = path
        self.allowance = allowance(path, byte_limit)
        self.rows = 0  # line ends so far
        self.size = 0  # uncompressed bytes so far
        self.problem: Exception | None = None
        self._remarks = remarks
        self._decoder = TextDecoder()
        self._blocks = _text_blocks(path, self.allowance, self._decoder)
        self._line = 0  # bytes of the line that is not yet ended
        self.has_lines = not is_document
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts = [self._rest]
        have = len(self._rest)
        while size < 0 or have < size:
            block = self._next()
            if not block:
                break
            parts.append(block)
            have += len(block)
        whole = b"".join(parts)
        if size < 0:
            self._rest = b""
            return whole
        self._rest = whole[size:]
        return whole[:size]

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def peek(self, size: int) -> bytes:
        """What `read` gives next, at most so many bytes of it; fewer only where the file ends."""
        self._rest = self.read(size) + self._rest
        return self._rest[:size]

    def batches(self) -> Iterator[tuple[int, list[str]]]:
        """Some lines at a time, and the number of the first; without their ends."""
        number, rest = 1, b""
        while block := self.read(_BLOCK):
            whole, end, rest = (rest + block).rpartition(b"\n")
            if end:
                lines = whole.decode().replace("\r\n", "\n").removesuffix("\r").split("\n")
                yield number, lines
                number += len(lines)
        if rest:
            yield number, [rest.decode().removesuffix("\r")]

    def _next(self) -> bytes:
        try:
            block = self._next_block()
            self.check(block)
        except Exception as problem:
            self.problem = problem  # Arrow may dress up what is raised inside it
            raise
        self.size += len(block)
        self.rows += block.count(b"\n")
        return block

    def _next_block(self) -> bytes:
        try:
            block = next(self._blocks, b"")
        except NotTextError as error:
            self._bad(error.place, error.data, "A text file should be UTF-8.", error.found)
        except DamagedError as damage:
            bad_file(
                self.path,
                "A .gz file should be whole.",
                f"{damage} after {self.size} uncompressed bytes",
                "Copy or make the file again.",
                self.rows + 1,
            )
        if self._remarks is not None and (remark := self._decoder.remark) is not None:
            add_note(self._remarks, remark)
        return block

    def check(self, block: bytes) -> None:
        """Raise what is wrong with the next block; at the end of the file it is empty."""
        if b"\0" in block:
            self._bad(block.index(b"\0"), block, "A text file should have no NUL.", "one")
        if self.has_lines:
            self._check_lines(block)

    def _bad(self, place: int, block: bytes, should: str, found: str) -> NoReturn:
        bad_file(
            self.path,
            should,
            found,
            "Save the file again as UTF-8 text, or correct that row.",
            self.rows + block.count(b"\n", 0, place) + 1,
        )

    def _check_lines(self, block: bytes) -> None:
        # A block is far shorter than the limit, so only the line that goes on can be too long.
        first = block.find(b"\n")
        self._line += len(block) if first < 0 else first
        if self._line > self.allowance.line:
            bad_file(
                self.path,
                f"A row should have at most {self.allowance.line:,} bytes.",
                f"a longer one, beginning near byte {self.size - self._line + len(block)},",
                "Check that the file has line ends.",
                self.rows + 1,
            )
        if first >= 0:
            self._line = len(block) - block.rfind(b"\n") - 1


def filled_lines(lines: Sequence[str]) -> NDArray[np.int64]:
    """The places of the lines that are not blank."""
    kept = [bool(line) and not line.isspace() for line in lines]
    return np.flatnonzero(np.array(kept, dtype=np.bool_))


def text_lines(path: Path, *, byte_limit: int | None = None) -> Iterator[str]:
    r"""The lines of a text file, plain or `.gz`, without their ends.

    >>> from pathlib import Path
    >>> _ = Path("words.txt").write_text("good\nbad\n")
    >>> list(text_lines(Path("words.txt")))
    ['good', 'bad']
    """
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        for _, lines in stream.batches():
            yield from lines


def file_bytes(path: Path, *, byte_limit: int | None = None) -> bytes:
    """The whole of a file that is not text, gunzipped."""
    try:
        return b"".join(_blocks(path, allowance(path, byte_limit)))
    except DamagedError as damage:
        bad_file(path, "A .gz file should be whole.", f"{damage}", "Copy or make the file again.")


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; anything else gets a sentence."""
    try:
        return open_plain(path)
    except UnreadableError as error:
        should = "A task file should be a plain file that can be read."
        bad_file(path, should, error.found, "Rename it, or check its rights.")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        bad_file(path, "A task file should be readable.", reason, "Check the path and its rights.")
    except ValueError:  # a NUL in the name
        bad_file(path, "A path should have no NUL.", "one", "Check the path.")


class DamagedError(Exception):
    """What is wrong with a gzip file."""


def add_note(remarks: list[str], remark: str) -> None:
    """Keep what is to be noted of a file, once; its subject is the file."""
    if remark not in remarks:
        remarks.append(remark)


def _text_blocks(path: Path, allowance: Allowance, decoder: TextDecoder) -> Iterator[bytes]:
    """Blocks of UTF-8, in which a line end of two characters is not cut in half."""
    rest = b""
    for block in _blocks(path, allowance):
        whole = rest + decoder.decode(block)
        rest = b"\r" if whole.endswith(b"\r") else b""
        if whole := whole.removesuffix(b"\r"):
            yield whole
    if whole := rest + decoder.decode(b"", final=True):
        yield whole


def _blocks(path: Path, allowance: Allowance) -> Iterator[bytes]:
    total = 0
    with open_file(path) as file:
        for block, packed in unpacked(file, is_gzip=path.suffix.lower() == ".gz"):
            total += len(block)
            allowance.check(total, packed=packed)
            yield block


def unpacked(file: BinaryIO, *, is_gzip: bool) -> Iterator[tuple[bytes, int]]:
    """Blocks of a file, and how many of its bytes all blocks so far came from."""
    if is_gzip:
        yield from _gunzip(file)
        return
    while block := file.read(_BLOCK):
        yield block, file.tell()


def _gunzip(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Uncompressed blocks, each of at most `_BLOCK` bytes; several members may follow each other."""
    engine = zlib.decompressobj(wbits=31)
    data = file.read(_BLOCK)
    if not data:
        raise DamagedError("an empty file, not gzip,")
    while True:
        try:
            block = engine.decompress(data, _BLOCK)
        except zlib.error as error:
            raise DamagedError(f"broken gzip data ({error})") from None
        if block:
            yield block, file.tell() - len(engine.unconsumed_tail) - len(engine.unused_data)
        if engine.eof:
            data = engine.unused_data.lstrip(b"\0")  # zeros after the end are padding
            while not data:
                data = file.read(_BLOCK)
                if not data:
                    return
                data = data.lstrip(b"\0")
            engine = zlib.decompressobj(wbits=31)
        elif engine.unconsumed_tail:
            data = engine.unconsumed_tail
        elif not block or not data:
            data = file.read(_BLOCK)
            if not data:
                raise DamagedError("gzip data that break off")
        else:
            data = b""  # the engine may still hold output
