"""Tables read once: in one call by their path, between calls by a hash of the file's bytes.

An entry is an Arrow file behind the hash of its own bytes. It is written aside and renamed, and one
that does not match its hash, whatever broke it, is read again from the task file and rewritten.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from taskmix.errors import RecordError
from taskmix.files import free_memory, make_folder, read_plain, replacing
from taskmix.tasks._formats._readers import Format, Rows, file_format, read_rows
from taskmix.tasks._formats._streams import open_file
from taskmix.tasks._formats._words import show_path
from taskmix.tasks._loading._notes import Notes

FORMAT = 4  # of an entry and of what the readers give: raise it when either changes
_DIGEST = 32
_NUMBERS = (
    "\0row"  # the column of an entry that has the numbers of rows; no file has one of that name
)


class TableReader:
    """Reads each file once."""

    def __init__(self, *, cache: Path | None, byte_limit: int | None, notes: Notes) -> None:
        self._cache = cache
        self.byte_limit = byte_limit
        self._notes = notes
        self._known: dict[Path, Rows] = {}

    def read(self, path: Path) -> Rows:
        if path not in self._known:
            self._known[path] = self._from_cache(path)
            for remark in self._known[path].remarks:
                self._notes.add_of_file(remark, path)
        return self._known[path]

    def _from_cache(self, path: Path) -> Rows:
        known = file_format(path)
        if self._cache is None or known is None:
            return read_rows(path, byte_limit=self.byte_limit)
        digest = hashlib.sha256()
        with open_file(path) as file:
            while block := file.read(2**20):
                digest.update(block)
        ending = "".join(path.suffixes[-2:]).lower()
        key = repr((FORMAT, ending, digest.hexdigest()))
        entry = self._cache / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.table"
        table = _load(entry)
        if table is not None:
            return self._restored(path, known[1], table)
        rows = read_rows(path, byte_limit=self.byte_limit)
        # One with something odd in it is looked at afresh.
        if not (rows.unusable or rows.mixed or rows.remarks or rows.added):
            try:
                _store(entry, rows)
            except (
                RecordError
            ) as error:  # a full or forbidden disk costs time later, not the call now
                self._notes.add(f"tables were not kept in {show_path(self._cache)}: {error}")
        return rows

    def _restored(self, path: Path, form: Format, table: pa.Table) -> Rows:
        numbers = None
        if _NUMBERS in table.column_names:
            numbers = np.asarray(table.column(_NUMBERS).to_numpy(), dtype=np.int64)
            table = table.drop_columns([_NUMBERS])
        typed, form = form not in ("csv", "tsv"), "csv" if form == "tsv" else form
        limit = self.byte_limit
        return Rows(table, path, form, byte_limit=limit, typed=typed, numbers=numbers)


def _store(entry: Path, rows: Rows) -> None:
    table = rows.table
    if rows.numbers is not None:
        table = table.append_column(_NUMBERS, pa.array(rows.numbers))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue()
    make_folder(entry.parent)
    with replacing(entry, sync=False) as sink:
        sink.write(hashlib.sha256(data).digest())
        sink.write(data)


def _load(entry: Path) -> pa.Table | None:
    try:
        data = read_plain(entry, limit=free_memory() // 2)
    except (OSError, RecordError):  # not there yet, or not ours to read: then the task file is read
        return None
    body = memoryview(data)[_DIGEST:]
    if hashlib.sha256(body).digest() != data[:_DIGEST]:
        return None
    try:
        table = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(body))).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # another wrote it
        return None
    return table
