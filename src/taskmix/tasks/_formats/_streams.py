"""The bytes of a task file, gunzipped, counted and checked while they go by.

Nothing larger than a block is held. What a file may become is an `Allowance` of `taskmix.files`, a ratio
and a share of free memory, and `byte_limit` takes their place where it is given.
Whatever is wrong with the bytes themselves (gzip, encoding, a NUL, an endless line) is said here, once,
for every text format; `rows` counts the line ends seen so far, so the sentence can name the row.

Text files as they were saved: UTF-8, UTF-16 and UTF-32 by their marks, Windows-1252 as a last resort.

Spreadsheets save UTF-16, and older programs cp1252, the Latin alphabet of Windows. UTF-8 is checked and
passed on as it is. UTF-16 without its mark shows by zeros in every second byte. Bytes that are no UTF-8
are taken for cp1252 only where no character before them was beyond ASCII, and where the text around
them is no UTF-8 with a few broken bytes: a guess that is wrong would change letters without a word.
"""

from __future__ import annotations

import codecs
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.files import Allowance, UnreadableError, open_plain
from taskmix.tasks._formats._words import bad_file

_MARKS = (  # the longer ones first: UTF-32 begins as UTF-16 does
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LONGEST_MARK = 4
_LOOKED_AT = 4096  # bytes from which UTF-16 without a mark is told
_ZEROS, _NO_ZEROS = (
    0.5,
    0.05,
)  # shares of zeros in the bytes that have them in UTF-16, and the others
_MANY = 3  # characters of UTF-8, which cp1252 has by chance where two rare ones meet
_WIDE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_ASCII = bytes(range(128))
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_NAMES = {"utf-16": "UTF-16", "utf-32": "UTF-32", "cp1252": "Windows-1252 (cp1252)"}


class NotTextError(Exception):
    """What is wrong with a block of bytes, and at which place of them."""

    def __init__(self, data: bytes, place: int, found: str) -> None:
        super().__init__(found)
        self.data = data
        self.place = place
        self.found = found


class TextDecoder:
    """Turns the blocks of a file, one after another, into blocks of whole characters in UTF-8."""

    def __init__(self) -> None:
        self.encoding = "utf-8"
        self._is_start = True
        self._held = b""  # the beginning of a character that the last block cut in two
        self._has_wide = False  # whether a character beyond ASCII was UTF-8
        self._wide = self._odd = 0  # of what is read as cp1252: UTF-8 after all, and other bytes
        self._decoder: codecs.IncrementalDecoder | None = None

    @property
    def remark(self) -> str | None:
        """What is to be noted of the encoding; nothing of UTF-8."""
        if self.encoding == "utf-8":
            return None
        return f"is not UTF-8 and was read as {_NAMES[self.encoding[:6]]}"

    def decode(self, block: bytes, *, final: bool = False) -> bytes:
        data = self._held + block
        self._held = b""
        if self._is_start:
            if len(data) < _LONGEST_MARK and not final:
                self._held = data
                return b""
            data = self._begin(data)
        if self._decoder is not None:
            return self._transcode(data, final=final)
        if data.isascii():
            return data
        try:
            _, used = codecs.utf_8_decode(data, "strict", final)
        except UnicodeDecodeError as error:
            return self._fall_back(data, error, final=final)
        self._has_wide |= not data[:used].isascii()
        self._held = data[used:]
        return data[:used]

    def _begin(self, data: bytes) -> bytes:
        self._is_start = False
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                self._choose(encoding)
                return data.removeprefix(mark)
        if unmarked := _unmarked(data[:_LOOKED_AT]):
            self._choose(unmarked)
        return data

    def _choose(self, encoding: str) -> None:
        self.encoding = encoding
        if encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding)()

    def _transcode(self, data: bytes, *, final: bool) -> bytes:
        if self._decoder is None:
            raise AssertionError("there is a decoder of what is not UTF-8")
        if self.encoding == "cp1252":
            self._check_guess(data)
        try:
            return self._decoder.decode(data, final).encode()
        except UnicodeDecodeError as error:
            self._refuse(bytes(error.object), error.start)

    def _fall_back(self, data: bytes, error: UnicodeDecodeError, *, final: bool) -> bytes:
        if self._has_wide or not data[: error.start].isascii():
            self._refuse(data, error.start)
        self._choose("cp1252")
        return self._transcode(data, final=final)

    def _check_guess(self, data: bytes) -> None:
        """Refuse what is binary, and what is UTF-8 but for a few bytes."""
        if control := _CONTROL.search(data):
            self._refuse(data, control.start())
        wide = _WIDE.findall(data)
        self._wide += len(wide)
        self._odd += len(data.translate(None, _ASCII)) - sum(map(len, wide))
        if self._wide > self._odd and self._wide >= _MANY:
            self._refuse(data, data.index(wide[0]))

    def _refuse(self, data: bytes, place: int) -> NoReturn:
        raise NotTextError(data, place, f"the bytes {data[place : place + 12]!r}")


def _unmarked(data: bytes) -> str | None:
    """UTF-16 of mostly ASCII has a zero in every second byte."""
    pairs = len(data) // 2
    if pairs < 2 or b"\0" not in data:
        return None
    first, second = data[0::2].count(0) / pairs, data[1::2].count(0) / pairs
    if second >= _ZEROS and first <= _NO_ZEROS:
        return "utf-16-le"
    if first >= _ZEROS and second <= _NO_ZEROS:
        return "utf-16-be"
    return None


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
