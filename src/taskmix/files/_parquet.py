"""What a Parquet file becomes when it is read, known before it is.

The footer says how large a file is, and may lie; and what it says is the size before decoding: a column
of one long text and a million references to it is small until it is a table. So of the footer only the
number of rows and the places of the pages are used. Each page has a header of its own, which is what
decides how much memory reading it takes. Texts are then counted exactly, by reading them as references
to the different ones.

A limit on the memory of the process does not serve: Arrow's pool reserves a gigabyte ahead, within which
nothing is refused, and one row may be a list of all its values. Footer and headers are in Thrift's
compact protocol: numbers, structures and lists. Arrow reads it too, but asking Arrow for the columns of
some footers that are none ends the process. Whatever is not as it should be in them is a `ValueError` or
an `IndexError`, the latter where the data end.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from taskmix.files._allowance import Allowance

COLUMN = 4096  # bytes that a column takes in memory however few rows it has
ROW = 8  # whoever uses a row has at least a number for it
HEADERS = (256, 1 << 16, 1 << 24)  # bytes that a page's header has: statistics in it may be long
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
OFFSET = 5  # bytes of a text besides its own: where it ends, and whether it is there
DICTIONARY, DATA, DATA_2 = 2, 0, 3  # types of pages
IN_FULL = {0, 3, 6}  # encodings that have every text in full: plain, levels, delta length
BY_REFERENCE = {2, 8}
BATCH = 1 << 16  # rows whose references are followed at once
ROW_GROUPS = 4  # the number of the field in the footer
DEEPEST = 16  # structures inside structures

Fields = dict[int, Any]  # by number; texts are left out


@dataclass(frozen=True)
class _Page:
    kind: int
    unpacked: int
    packed: int
    values: int
    encoding: int
    size: int  # of the header itself


@dataclass(frozen=True)
class _Chunk:
    """Where a column of a group of rows lies."""

    values: int
    begin: int
    end: int

    @classmethod
    def of(cls, fields: Fields) -> _Chunk:
        begin = fields[9]
        if 0 < fields.get(11, 0) < begin:  # the texts that are referred to come first
            begin = fields[11]
        if min(begin, fields[7], fields[5]) < 0:
            raise ValueError("a column before the beginning")
        return cls(fields[5], begin, begin + fields[7])


def check_parquet(
    parquet: Any,  # pyarrow.parquet.ParquetFile
    source: Any,  # the open file, to read and seek
    allowance: Allowance,
    *,
    columns: Sequence[str] | None = None,
    by_group: bool = False,
) -> None:
    """Raises where the rows, or with `by_group` the largest group of them, would take too much.

    Pages that cannot be found where the footer says are a `ValueError`.

    >>> from pathlib import Path
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> pq.write_table(pa.table({"x": range(1000)}), "rows.parquet")
    >>> with open_plain(Path("rows.parquet")) as file:
    ...     check_parquet(pq.ParquetFile(file), file, Allowance(Path("rows.parquet"), 9, limit=100))
    Traceback (most recent call last):
    taskmix.files._atomic.UnreadableError: A file should have at most 100 uncompressed bytes. ...
    """
    schema = parquet.schema
    allowance.check(COLUMN * len(schema))
    places = [
        place
        for place in range(len(schema))
        if columns is None or schema.column(place).path.split(".")[0] in columns
    ]
    whole, readers = 0, _Readers(source)
    for number, (rows, chunks) in enumerate(_groups(source)):
        if len(chunks) != len(schema):
            raise ValueError("a group of rows with other columns")
        taken = ROW * rows
        uncounted = []
        for place in places:
            allowance.check(whole + taken)
            size, batch = _column(schema.column(place), rows, chunks[place], source, allowance)
            taken += size
            if batch:
                uncounted.append((schema.column(place).path, batch))
        allowance.check(whole + taken)
        for path, batch in uncounted:
            # Arrow cannot give references to texts that build on each other.
            reader = readers.of(path, by_reference=batch == BATCH)
            taken += _text(reader, number, path, batch, allowance, whole + taken)
        allowance.check(whole + taken)
        whole = 0 if by_group else whole + taken


def _groups(source: Any) -> Iterator[tuple[int, list[_Chunk]]]:
    """Of each group of rows in the footer, their number and where its columns lie."""
    source.seek(-8, io.SEEK_END)
    length = int.from_bytes(source.read(4), "little")
    source.seek(-8 - length, io.SEEK_END)
    try:
        for group in structures_of(source.read(length), ROW_GROUPS):
            yield group[3], [_Chunk.of(each[3]) for each in group[1]]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("a footer that does not say where the columns are") from error


def _column(
    column: Any, rows: int, chunk: _Chunk, source: Any, allowance: Allowance
) -> tuple[int, int]:
    """Bytes of a column in memory, and where that is not all of it, how many rows to read at once."""
    width = max(column.length, 1)  # of texts of one length
    width = WIDTHS.get(column.physical_type, width if column.length else OFFSET)
    is_text = column.physical_type == "BYTE_ARRAY"
    taken, most, batch = 0, 0, BATCH
    # A column that does not repeat is read for as many rows as there are, whatever its pages claim.
    repeats = column.max_repetition_level > 0
    longest = 0  # bytes of a text, at most
    for page in _pages(chunk, source):
        values = page.values if repeats else min(page.values, rows)
        taken += page.unpacked if is_text or page.kind == DICTIONARY else 0
        if page.kind == DICTIONARY:
            longest = page.unpacked
            continue
        taken += values * width
        if is_text and page.encoding in BY_REFERENCE:
            most += values * longest
        elif is_text and page.encoding not in IN_FULL:  # a text may be the last one and a bit more
            most += values * page.unpacked
            room = allowance.unasked // (4 * max(page.unpacked, 1))
            batch = 1 if repeats else max(1, min(batch - 1, room))
        allowance.check(max(taken, page.unpacked))
    return (taken + most, 0) if taken + most <= allowance.unasked else (taken, batch if most else 0)


def _pages(chunk: _Chunk, source: Any) -> Iterator[_Page]:
    """The pages of a column, by their own headers."""
    place, seen = chunk.begin, 0
    while place < chunk.end and seen < chunk.values:
        page = _header(source, place)
        place += page.size + page.packed
        if page.kind in (DATA, DATA_2):
            seen += page.values
        if page.kind in (DATA, DATA_2, DICTIONARY):
            yield page


class _Readers:
    """Readers of the columns, which read the footer once each."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._known: dict[str, Any] = {}

    def of(self, path: str, *, by_reference: bool) -> Any:
        import pyarrow.parquet as pq

        referred = path if by_reference else ""
        if referred not in self._known:
            self._source.seek(0)
            paths = [path] if by_reference else None
            self._known[referred] = pq.ParquetFile(self._source, read_dictionary=paths)
        return self._known[referred]


def _text(parquet: Any, group: int, path: str, rows: int, allowance: Allowance, before: int) -> int:
    """Bytes of the texts of a column, of which each is read once and then referred to."""
    taken = 0
    for batch in parquet.iter_batches(rows, row_groups=[group], columns=[path]):
        for column in batch.columns:
            taken += _length(column)
            allowance.check(before + taken)
    return taken


def _length(array: Any) -> int:
    """Bytes of all texts in an array, once references are followed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return int(pc.sum(pc.take(lengths, array.indices).cast(pa.int64())).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_length(each) for each in array.flatten())
    if pa.types.is_map(kind):
        return _length(array.keys) + _length(array.items)
    if pa.types.is_nested(kind):
        return _length(array.values)
    return int(array.nbytes)


def _header(source: Any, place: int) -> _Page:
    """A page's header; anything else is a `ValueError`."""
    for size in HEADERS:
        source.seek(place)
        with contextlib.suppress(IndexError):  # it is longer
            return _page(*structure_at(source.read(size), 0))
    raise ValueError("a page without a header")


def _page(fields: Fields, size: int) -> _Page:
    try:
        inner = fields.get(5) or fields.get(8) or fields.get(7) or {}
        page = _Page(
            kind=fields[1],
            unpacked=fields[2],
            packed=fields[3],
            values=inner.get(1, 0),
            encoding=inner.get(4 if 8 in fields else 2, 0),
            size=size,
        )
        if min(page.unpacked, page.packed, page.values, page.kind, page.encoding) < 0:
            raise ValueError("a page of negative size")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("a page without a header") from error
    return page


def structures_of(data: bytes, wanted: int) -> Iterator[Fields]:
    """The structures of the list that is a field of the structure at the beginning, one at a time."""
    place = number = 0
    while data[place]:
        number, kind, place = _field(data, place, number)
        if number == wanted and kind == 9:
            count, _, place = _list(data, place)
            for _ in range(count):
                fields, place = structure_at(data, place)
                yield fields
        else:
            _, place = _value(data, place, kind, 0)


def structure_at(data: bytes, place: int, depth: int = 0) -> tuple[Fields, int]:
    """The fields of a structure, and where it ends."""
    if depth > DEEPEST:
        raise ValueError("structures in structures")
    fields: Fields = {}
    number = 0
    while data[place]:
        number, kind, place = _field(data, place, number)
        fields[number], place = _value(data, place, kind, depth)
    return fields, place + 1


def _field(data: bytes, place: int, number: int) -> tuple[int, int, int]:
    step, kind = data[place] >> 4, data[place] & 15
    if step:
        return number + step, kind, place + 1
    number, place = _whole_number(data, place + 1)
    return number, kind, place


def _list(data: bytes, place: int) -> tuple[int, int, int]:
    count, kind = data[place] >> 4, data[place] & 15
    if count < 15:
        return count, kind, place + 1
    count, place = _unsigned(data, place + 1)
    return count, kind, place


def _value(data: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    match kind:
        case 5 | 6 | 4:
            return _whole_number(data, place)
        case 8:
            length, place = _unsigned(data, place)
            return None, place + length
        case 12:
            return structure_at(data, place, depth + 1)
        case 9 | 10:
            count, inner, place = _list(data, place)
            if count > len(data):
                raise ValueError("a list longer than the file")
            items = []
            for _ in range(count):
                if inner in (1, 2):  # true or false, a byte each in a list
                    place += 1
                    continue
                item, place = _value(data, place, inner, depth + 1)
                items.append(item)
            return items, place
        case 1 | 2:
            return kind == 1, place
        case 3:
            return data[place], place + 1
        case 7:
            return None, place + 8
    raise ValueError("a type that Parquet does not have")


def _whole_number(data: bytes, place: int) -> tuple[int, int]:
    value, place = _unsigned(data, place)
    return (value >> 1) ^ -(value & 1), place


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    byte = data[place]
    if byte < 128:
        return byte, place + 1
    value, shift = byte & 127, 7
    while True:
        place += 1
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place + 1
        shift += 7
        if shift > 63:
            raise ValueError("a number without end")
