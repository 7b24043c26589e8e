"""Text files as they were saved: UTF-8, UTF-16 and UTF-32 by their marks, Windows-1252 as a last resort.

Spreadsheets save UTF-16, and older programs cp1252, the Latin alphabet of Windows. UTF-8 is checked and
passed on as it is. UTF-16 without its mark shows by zeros in every second byte. Bytes that are no UTF-8
are taken for cp1252 only where no character before them was beyond ASCII, and where the text around
them is no UTF-8 with a few broken bytes: a guess that is wrong would change letters without a word.
"""

from __future__ import annotations

import codecs
import re
from typing import NoReturn

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
_WIDE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
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
        self._has_wide = True
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
        if self.encoding == "cp1252" and (control := _CONTROL.search(data)):
            self._refuse(data, control.start())
        try:
            return self._decoder.decode(data, final).encode()
        except UnicodeDecodeError as error:
            self._refuse(bytes(error.object), error.start)

    def _fall_back(self, data: bytes, error: UnicodeDecodeError, *, final: bool) -> bytes:
        wide = _WIDE.findall(data)
        odd = sum(byte > 127 for byte in _WIDE.sub(b"", data))
        if self._has_wide or len(wide) > odd or not data[: error.start].isascii():
            self._refuse(data, error.start)
        self._choose("cp1252")
        return self._transcode(data, final=final)

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
