"""Parquet, and Arrow's own files: `.arrow`, and `.feather` as pandas writes it.

Parquet is checked by `taskmix.files` before anything is unpacked. A file of Arrow's is read as the
stream that stands in it. The index at its end is not believed: it may name one batch a thousand times.
Buffers may be packed, and each says before itself how long it becomes, so every message is looked at (a
few fields of its FlatBuffers header) before Arrow unpacks it.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from taskmix.files import Allowance, check_parquet
from taskmix.tasks._formats._streams import allowance, file_bytes, open_file
from taskmix.tasks._formats._words import bad_file, quoted

_FILE = b"ARROW1\0\0"  # before the stream in a file
_FIRST_FEATHER = b"FEA1"
_DICTIONARY, _BATCH = 2, 3  # kinds of messages
_CELL = 8  # bytes of a row in whatever is made of it


def read_ipc(path: Path, byte_limit: int | None) -> pa.Table:
    """The table of an Arrow file or stream."""
    should, remedy = "An Arrow file should be whole.", "Copy or make the file again."
    data = file_bytes(path, byte_limit=byte_limit)
    if data.startswith(_FIRST_FEATHER):
        remedy = "Write it again with a newer pandas, or as .parquet."
        bad_file(path, "A .feather file should be of version 2.", "the first version", remedy)
    bounds = allowance(path, byte_limit, is_table=True)
    stream = memoryview(data)[len(_FILE) if data.startswith(_FILE) else 0 :]
    try:
        bounds.check(sum(_unpacked_sizes(stream)))
        table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
        bounds.check(table.num_rows * _CELL * max(table.num_columns, 1))
        table.validate(full=True)
        return _without_references(table, bounds)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError, EOFError) as error:
        bad_file(path, should, f"that it cannot be read ({quoted(str(error))})", remedy)


def _unpacked_sizes(stream: memoryview) -> Iterator[int]:
    """Bytes that the buffers of each message become."""
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(stream)):
        if message.body is not None:
            yield _unpacked(message.metadata.to_pybytes(), message.body)


def _unpacked(header: bytes, body: Any) -> int:
    """Bytes of all buffers of a message, as they say themselves where they are packed."""
    message = _Fields(header, struct.unpack_from("<I", header)[0])
    kind = struct.unpack_from("<B", header, place)[0] if (place := message.at(1)) else 0
    batch = message.table(2)
    if kind == _DICTIONARY and batch is not None:
        batch = batch.table(1)
    if kind not in (_DICTIONARY, _BATCH) or batch is None or (buffers := batch.at(2)) is None:
        return int(body.size)
    start = buffers + struct.unpack_from("<I", header, buffers)[0]
    (count,) = struct.unpack_from("<I", header, start)
    is_packed = batch.at(3) is not None
    total = 0
    for number in range(count):
        offset, length = struct.unpack_from("<qq", header, start + 4 + 16 * number)
        if is_packed and length >= 8:
            if not 0 <= offset <= body.size - 8:
                raise ValueError("a buffer beyond its message")
            (said,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            total += length if said == -1 else max(said, 0)
        else:
            total += max(length, 0)
    return total


class _Fields:
    """A table of FlatBuffers: where its fields are."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._start = start
        self._layout = start - struct.unpack_from("<i", data, start)[0]
        if not 0 <= self._layout < len(data):
            raise ValueError("a broken header")
        (self._size,) = struct.unpack_from("<H", data, self._layout)

    def at(self, field: int) -> int | None:
        """Where a field begins; None where it is not there."""
        place = 4 + 2 * field
        if place + 2 > self._size:
            return None
        (offset,) = struct.unpack_from("<H", self._data, self._layout + place)
        return self._start + offset if offset else None

    def table(self, field: int) -> _Fields | None:
        place = self.at(field)
        if place is None:
            return None
        return _Fields(self._data, place + struct.unpack_from("<I", self._data, place)[0])


def _without_references(table: pa.Table, bounds: Allowance) -> pa.Table:
    """Columns whose cells refer to a list of values, or to parts of a text, as plain ones."""
    taken = table.nbytes
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_dictionary(field.type) or _is_view(field.type):
            taken += _size_of_cells(column)
            bounds.check(taken)
            kind = field.type.value_type if pa.types.is_dictionary(field.type) else pa.string()
            table = table.set_column(place, field.name, column.cast(kind))
        elif _refers(field.type):  # inside of lists and the like
            table = table.set_column(place, field.name, pa.nulls(len(table)))
    return table


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind))


def _refers(kind: pa.DataType) -> bool:
    """Whether cells hold references somewhere inside."""
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    here = pa.types.is_dictionary(kind) or _is_view(kind) or pa.types.is_binary_view(kind)
    here = here or pa.types.is_run_end_encoded(kind) or pa.types.is_list_view(kind)
    return bool(here or pa.types.is_large_list_view(kind)) or any(map(_refers, inner))


def _size_of_cells(column: pa.ChunkedArray) -> int:
    """Bytes of all cells written out."""
    total = 0
    for chunk in column.chunks:
        values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
        try:
            lengths = pc.cast(pc.binary_length(values), pa.int64())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            total += _CELL * len(chunk)
            continue
        if pa.types.is_dictionary(chunk.type):
            lengths = lengths.take(chunk.indices.drop_null())
        total += int(pc.sum(lengths).as_py() or 0) + _CELL * len(chunk)
    return total


def read_parquet(
    path: Path, columns: Sequence[str] | None = None, *, byte_limit: int | None = None
) -> pa.Table:
    """A Parquet file, or some of its columns, as a table.

    >>> from pathlib import Path
    >>> import pyarrow as pa, pyarrow.parquet
    >>> pyarrow.parquet.write_table(pa.table({"x": [1, 2], "y": [3, 4]}), "rows.parquet")
    >>> read_parquet(Path("rows.parquet"), ["y"]).to_pydict()
    {'y': [3, 4]}
    """
    with opened_parquet(path, byte_limit) as (file, source):
        check_parquet(file, source, allowance(path, byte_limit, is_table=True), columns=columns)
        names = None if columns is None else list(columns)
        table = file.read(names)
        for name in set(columns or ()) - set(table.column_names):
            should = f"The file should have the columns {', '.join(columns or ())}."
            bad_file(path, should, f"no `{name}`", "Give another file.")
        table.validate(full=True)  # among others: that text is UTF-8
        return table


@contextmanager
def opened_parquet(
    path: Path, byte_limit: int | None
) -> Iterator[tuple[arrow_parquet.ParquetFile, BinaryIO]]:
    """A Parquet file to read; whatever is wrong with it is told in a sentence."""
    with open_file(path) as plain:
        compressed = path.suffix.lower() == ".gz"
        source = io.BytesIO(file_bytes(path, byte_limit=byte_limit)) if compressed else plain
        try:
            file = arrow_parquet.ParquetFile(source)
            file.schema_arrow.names  # noqa: B018 - names that are not UTF-8 fail here
            yield file, source
        except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError) as error:
            _bad_parquet(path, error)


def _bad_parquet(path: Path, error: Exception) -> NoReturn:
    should, remedy = "A .parquet file should be whole Parquet.", "Copy or make the file again."
    bad_file(path, should, f"that it cannot be read ({quoted(str(error))})", remedy)
