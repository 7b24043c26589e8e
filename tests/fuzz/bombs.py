"""Small files that become large ones, and a process that believes it has a gigabyte."""

from __future__ import annotations

import gzip
import json
import os
import resource
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from readers import all_readers

from taskmix.errors import TaskmixError
from taskmix.files import Allowance

GIGABYTE = 1 << 30
PIECE = 10 << 20


def peak_of(action: Callable[[], object], *, free: int = GIGABYTE) -> tuple[str, int]:
    """What came of it (`read`, or the sentence), and by how many bytes memory grew at its largest.

    In a process of its own, which takes `free` for the free memory.
    """
    ear, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            sys.modules[Allowance.__module__].free_memory = lambda: free  # type: ignore[attr-defined]
            pa.default_memory_pool().release_unused()  # what making the file took would be used again
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before = _resident("VmRSS")
            try:
                action()
                said = "read"
            except TaskmixError as error:
                said = str(error)
            except BaseException as error:
                said = f"broken: {error!r}"
            grown = _resident("VmHWM") - before
            os.write(mouth, json.dumps([said[:3000], grown]).encode())
        finally:
            os._exit(0)
    os.close(mouth)
    with os.fdopen(ear, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    said, grown = json.loads(told or b'["broken: the process died", 0]')
    return said, grown


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def zeros_of(word: bytes = b"a", begin: bytes = b"") -> bytes:
    """A gzip file of `begin` and then 200 MB of a word again and again, in several members."""
    return gzip.compress(begin) + gzip.compress(word * (PIECE // len(word)), 6) * 20


def _parquet(path: Path, table: pa.Table, **options: object) -> Path:
    pq.write_table(table, path, **options)
    return path


def parquet_of_references(path: Path) -> Path:
    """One text of 100 kB, referred to 60,000 times: 6 GB in some kB."""
    indices = pa.array(np.zeros(60_000, np.int32))
    text = pa.DictionaryArray.from_arrays(indices, pa.array(["a" * 100_000]))
    return _parquet(path, pa.table({"text": text, "label": pa.repeat(1, 60_000)}))


def parquet_of_nested_references(path: Path) -> Path:
    """The same in lists."""
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(60_000, np.int32)), ["a" * 100_000])
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 60_001, 10, dtype=np.int32)), values)
    return _parquet(path, pa.table({"text": lists}))


def parquet_of_rows(path: Path) -> Path:
    """Two hundred million rows of one number."""
    group = pa.table({"label": pa.repeat(pa.scalar(1, pa.int64()), 4_000_000)})
    with pq.ParquetWriter(path, group.schema) as writer:
        for _ in range(50):
            writer.write_table(group)
    return path


def parquet_of_nulls(path: Path) -> Path:
    """Columns of nothing."""
    columns = {f"c{place}": pa.nulls(4_000_000, pa.float64()) for place in range(8)}
    return _parquet(path, pa.table(columns))


def parquet_of_one_list(path: Path) -> Path:
    """One row with a list of 40 million equal numbers."""
    values = pa.repeat(pa.scalar(0, pa.int64()), 40_000_000)
    lists = pa.ListArray.from_arrays(pa.array([0, 40_000_000], pa.int32()), values)
    return _parquet(path, pa.table({"x": lists}))


def parquet_of_prefixes(path: Path) -> Path:
    """Texts of which each is the one before and nothing more."""
    table = pa.table({"text": pa.repeat("a" * 100_000, 10_000)})
    return _parquet(path, table, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})


def parquet_that_lies(path: Path) -> Path:
    """A footer that says of 200 MB of zeros that they are a kilobyte."""
    zeros = pa.repeat("a" * 1_000_000, 200)
    _parquet(path, pa.table({"text": zeros}), use_dictionary=False, compression="zstd")
    data = path.read_bytes()
    metadata = pq.ParquetFile(path).metadata
    lie = _varint(1000)
    for size in {
        metadata.row_group(0).total_byte_size,
        metadata.row_group(0).column(0).total_uncompressed_size,
    }:
        true = _varint(size)
        assert true in data
        padded = lie[:-1] + bytes([lie[-1] | 128]) + b"\x80" * (len(true) - len(lie) - 1) + b"\0"
        head, tail = data[:-20_000], data[-20_000:]
        data = head + tail.replace(true, padded)
    path.write_bytes(data)
    assert pq.ParquetFile(path).metadata.row_group(0).total_byte_size == 1000
    return path


def _varint(value: int) -> bytes:
    value, found = value << 1, b""
    while value > 127:
        value, found = value >> 7, found + bytes([value & 127 | 128])
    return found + bytes([value])


def csv_of_columns(path: Path) -> Path:
    header = ",".join(f"c{place}" for place in range(100_000))
    path.write_text(f"{header}\n{',' * 99_999}\n")
    return path


def jsonl_of_keys(path: Path) -> Path:
    """Every row has a key of its own."""
    path.write_bytes(b"".join(b'{"k%06d":1}\n' % place for place in range(40_000)))
    return path


def jsonl_of_spaced_keys(path: Path) -> Path:
    path.write_bytes(b"".join(b'{ "\\"%06d\\"" : 1}\n' % place for place in range(30_000)))
    return path


def jsonl_of_paths(path: Path) -> Path:
    """Two names only, but every row has a way of its own through objects in objects."""
    rows = []
    for place in range(20_000):
        way = [b'{"%s":' % (b"a" if bit == "1" else b"b") for bit in f"{place:015b}"]
        rows.append(b"".join(way) + b"1" + b"}" * 15 + b"\n")
    path.write_bytes(b"".join(rows))
    return path


def jsonl_of_lists(path: Path) -> Path:
    """A row that mixes types, so that Python reads it, with lists by the million, packed."""
    row = b'{"x":1,"y":[' + b"[]," * 300_000 + b"[]]}\n"
    path.write_bytes(gzip.compress(b'{"x":"a"}\n' + row * 60))
    return path


def conll_of_blank_rows(path: Path) -> Path:
    """A wide row, and then blank ones, which were as wide while they were cut."""
    path.write_bytes(b"\t".join([b"a"] * 2000) + b"\n" + b"\n" * 2_000_000)
    return path


def conll_of_columns(path: Path) -> Path:
    path.write_bytes(b"\t".join([b"a"] * 100_000) + b"\n")
    return path


def json_of_keys(path: Path) -> Path:
    """Every object has a key of its own."""
    path.write_bytes(b"[" + b",".join(b'{"k%06d":1}' % place for place in range(40_000)) + b"]")
    return path


def json_of_lists(path: Path) -> Path:
    """Lists by the million, packed."""
    path.write_bytes(gzip.compress(b'[{"x":[' + b"[]," * 20_000_000 + b"[]]}]", 1))
    return path


def _xlsx(path: Path, **members: bytes) -> Path:
    """A workbook with some members in place of its own."""
    book = openpyxl.Workbook()
    book.active.append(["text", "label"])
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts |= {name.replace("__", "/") + ".xml": data for name, data in members.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


_SHEET = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    b"%b</sheetData></worksheet>"
)


def xlsx_of_cells(path: Path) -> Path:
    """A sheet of some million equal cells."""
    row = b"<row>" + b"<c><v>1</v></c>" * 1000 + b"</row>"
    return _xlsx(path, xl__worksheets__sheet1=_SHEET % (row * 5000))


def xlsx_of_texts(path: Path) -> Path:
    """Shared texts of 200 MB."""
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    texts = b'<sst xmlns="%b">%b</sst>' % (space, b"<si><t>aaaa</t></si>" * 10_000_000)
    return _xlsx(path, xl__sharedStrings=texts)


def xlsx_of_gaps(path: Path) -> Path:
    """Two cells at the far ends of a sheet, and sixteen thousand million between them."""
    cell = b'<row r="%d"><c r="%b"><v>1</v></c></row>'
    cells = cell % (1, b"A1") + cell % (1048576, b"XFD1048576")
    return _xlsx(path, xl__worksheets__sheet1=_SHEET % cells)


def xlsx_that_lies(path: Path) -> Path:
    """A sheet of 75 MB, of which the directory says a kilobyte."""
    xlsx_of_cells(path)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    begin = data.index(b"PK\x01\x02")
    place = data.index(struct.pack("<I", size), begin)
    data[place : place + 4] = struct.pack("<I", 1000)
    path.write_bytes(data)
    return path


def _feather(path: Path, table: pa.Table) -> Path:
    feather.write_feather(table, str(path), compression="zstd")
    return path


def feather_of_zeros(path: Path) -> Path:
    """Four hundred megabytes of zeros, packed."""
    return _feather(path, pa.table({"x": pa.repeat(pa.scalar(0, pa.int64()), 50_000_000)}))


def feather_of_references(path: Path) -> Path:
    """One text of 100 kB, referred to 60,000 times."""
    indices = pa.array(np.zeros(60_000, np.int32))
    text = pa.DictionaryArray.from_arrays(indices, pa.array(["a" * 100_000]))
    return _feather(path, pa.table({"text": text, "label": pa.repeat(1, 60_000)}))


def feather_of_nothing(path: Path) -> Path:
    """A thousand million rows that take no byte."""
    return _feather(path, pa.table({"x": pa.nulls(1_000_000_000)}))


def saved_zeros(folder: Path) -> Path:
    """What `save_to_disk` leaves, with one batch of four hundred megabytes of zeros, packed."""
    (folder / "state.json").write_text('{"_data_files": [{"filename": "a.arrow"}]}')
    (folder / "dataset_info.json").write_text("{}")
    rows = pa.table({"x": pa.repeat(pa.scalar(0, pa.int64()), 50_000_000)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(folder / "a.arrow", rows.schema, options=options) as writer:
        writer.write_table(rows)
    return folder / "a.arrow"


def vectors_of_one_word(path: Path) -> Path:
    path.write_bytes(zeros_of(b"a 0\n"))
    return path


def vectors_of_numbers(path: Path) -> Path:
    """A word whose numbers do not end."""
    path.write_bytes(zeros_of(b"0 ", b"a "))
    return path


def vectors_archive(path: Path) -> Path:
    words = np.frombuffer(b"\n" * 200_000, dtype=np.uint8)
    np.savez_compressed(path, words=words, vectors=np.zeros((200_001, 300), np.int8))
    return path


def vectors_that_lie(path: Path) -> Path:
    """An archive whose directory says less of a member than there is."""
    vectors_archive(path)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        sizes = [part.file_size for part in archive.infolist()]
    begin = data.index(b"PK\x01\x02")
    for size in sizes:
        place = data.index(struct.pack("<I", size), begin)
        data[place : place + 4] = struct.pack("<I", 1000)
    path.write_bytes(data)
    return path


def _run(folder: Path) -> Path:
    """A run of four steps; gives the part that has its last ones."""
    reader = next(each for each in all_readers() if each.name == "steps")
    reader.prepare(folder)
    return folder / reader.file


def run_of_equal_steps(folder: Path) -> Path:
    """Three million rows that are all the same."""
    part = _run(folder)
    schema = pq.read_schema(part)
    row = pa.Table.from_pylist([{"step": 3, "task": "a", "loss": 0.5}], schema=schema)
    group = row.take(pa.array(np.zeros(65536, np.int64)))
    with pq.ParquetWriter(part, schema, compression="zstd", write_page_checksum=True) as writer:
        for _ in range(50):
            writer.write_table(group)
    return part
