"""Task files as Arrow tables, by the ending of their name, each also with `.gz` behind it.

| ending               | a row is                            | columns                                |
|----------------------|-------------------------------------|----------------------------------------|
| `.jsonl`, `.ndjson`  | one JSON object a line              | its keys                               |
| `.json`              | an object, and more in `_json.py`   | its keys                               |
| `.csv`, `.tsv`       | one record of separated cells       | the header; cells are text until asked |
| `.xlsx`              | a row of a sheet                    | the header                             |
| `.parquet`           | a row                               | the schema                             |
| `.arrow`, `.feather` | a row                               | the schema                             |
| `.conll`             | a sentence                          | `1`, `2`, ...: lists, one item a token |
| `.txt`               | a line                              | `line`                                 |

Arrow reads tables. Only where it fails is the file gone over again, slowly, to find the first bad
row and to say what is wrong with it.

A table is read once: in one call by its path, between calls by a hash of the file's bytes. An entry is
an Arrow file behind the hash of its own bytes. It is written aside and renamed, and one that does not
match its hash, whatever broke it, is read again from the task file and rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.errors import RecordError, TaskFileError
from taskmix.files import free_memory, make_folder, read_plain, replacing
from taskmix.tasks._formats._arrow import opened_parquet, read_ipc, read_parquet
from taskmix.tasks._formats._conll import read_conll
from taskmix.tasks._formats._csv import CsvFile, read_csv
from taskmix.tasks._formats._json import JsonFile, first_keys
from taskmix.tasks._formats._streams import CheckedStream, filled_lines, open_file
from taskmix.tasks._formats._words import Notes, bad_file, quoted, show_path, show_place
from taskmix.tasks._formats._xlsx import read_xlsx

_ROWS_LOOKED_AT = 1000
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)
Format = Literal["jsonl", "json", "csv", "tsv", "xlsx", "parquet", "arrow", "conll", "txt"]
FORMATS: tuple[Format, ...] = (
    "jsonl",
    "json",
    "csv",
    "tsv",
    "xlsx",
    "parquet",
    "arrow",
    "conll",
    "txt",
)
TABLES = ("jsonl", "json", "csv", "tsv", "xlsx", "parquet", "arrow")  # whose columns have names
_ENDINGS: Mapping[str, Format] = {
    **{known: known for known in FORMATS},
    "ndjson": "jsonl",
    "tab": "tsv",
    "feather": "arrow",
    "ipc": "arrow",
    "pq": "parquet",
}
_SPREADSHEET = "Save it as .xlsx or .csv in the program that made it."
_UNPACK = "Unpack it first; of packed files only .gz is read."
_CONVERT = {
    **dict.fromkeys(("xls", "xlsm", "xlsb", "ods", "numbers", "gsheet"), _SPREADSHEET),
    **dict.fromkeys(
        ("pkl", "pickle", "joblib", "pt", "pth"),
        "Such files can run code when they are read, so they are not: load it where it was made and "
        "write .parquet (pandas: `frame.to_parquet`).",
    ),
    **dict.fromkeys(
        ("npy", "npz", "mat", "h5", "hdf5"),
        "Write its arrays as columns of .parquet, or give them to `taskmix.advise` in Python.",
    ),
    **dict.fromkeys(
        ("sav", "dta", "sas7bdat", "xpt", "rds", "rdata", "por"),
        "Export it as .csv, or read it with pandas (`read_spss`, `read_stata`, `read_sas`) and write "
        ".parquet.",
    ),
    **dict.fromkeys(("zip", "7z", "tar", "tgz", "rar", "bz2", "xz", "zst", "lz4"), _UNPACK),
    **dict.fromkeys(("db", "sqlite", "sqlite3", "duckdb", "sql"), "Export its table as .csv."),
    **dict.fromkeys(("arff", "xml", "html", "yaml", "yml"), "Convert it to .csv or .jsonl."),
    **dict.fromkeys(("pdf", "doc", "docx", "odt", "rtf"), "Copy its text into .csv or .jsonl."),
    **dict.fromkeys(
        ("bio", "iob", "iob2", "conllu"), "Rename it to .conll if it has a token a row."
    ),
}


def read_rows(path: Path, *, byte_limit: int | None = None) -> Rows:
    r"""The file as a table.

    >>> from pathlib import Path
    >>> _ = Path("rows.csv").write_text("x,label\n1,no\n2.5,yes\n")
    >>> read_rows(Path("rows.csv")).table.to_pydict()
    {'x': ['1', '2.5'], 'label': ['no', 'yes']}
    """
    known = file_format(path)
    if known is None:
        refuse_ending(path)
    remarks: list[str] = []
    rows = _read(path, known[1], byte_limit, remarks)
    _check_names(path, rows.table.column_names)
    pa.default_memory_pool().release_unused()  # what was taken while the file was read
    return rows


def _read(path: Path, form: Format, byte_limit: int | None, remarks: list[str]) -> Rows:
    rows = Rows(pa.table({}), path, form, byte_limit=byte_limit)
    match form:
        case "jsonl" | "json":
            found = JsonFile(path, byte_limit, remarks, expects_lines=form == "jsonl")
            rows = replace(
                rows,
                table=found.table,
                format="jsonl" if found.has_lines else "json",
                unusable=found.unusable,
                mixed=found.mixed,
                added=found.added,
                numbers=found.numbers,
            )
        case "csv" | "tsv":
            rows = replace(
                rows, table=read_csv(path, byte_limit, remarks), format="csv", typed=False
            )
        case "xlsx":
            book = read_xlsx(path, byte_limit, remarks)
            rows = replace(
                rows,
                table=book.table,
                unusable=book.unusable,
                mixed=book.mixed,
                added=book.added,
                numbers=book.numbers,
            )
        case "parquet":
            rows = replace(rows, table=read_parquet(path, byte_limit=byte_limit))
        case "arrow":
            rows = replace(rows, table=read_ipc(path, byte_limit))
        case "conll":
            table, numbers = read_conll(path, byte_limit, remarks)
            rows = replace(rows, table=table, numbers=numbers)
        case "txt":
            table, numbers = _read_lines(path, byte_limit, remarks)
            rows = replace(rows, table=table, numbers=numbers)
    return replace(rows, remarks=tuple(remarks))


def column_names(path: Path, *, byte_limit: int | None = None) -> tuple[str, ...]:
    """The columns of a table, without its rows where that can be; of .jsonl those of its first row."""
    known = file_format(path)
    if known is None or known[1] not in TABLES:
        return ()
    if known[1] == "parquet":
        with opened_parquet(path, byte_limit) as (file, _):
            return tuple(file.schema_arrow.names)
    if known[1] == "jsonl" and (keys := first_keys(path, byte_limit)) is not None:
        return keys
    if known[1] in ("csv", "tsv"):
        return tuple(CsvFile(path, byte_limit, []).header)
    return tuple(read_rows(path, byte_limit=byte_limit).table.column_names)


def _check_names(path: Path, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            should, remedy = "Column names should differ.", "Rename one of the two columns."
            bad_file(path, should, f"{quoted(name)} twice", remedy, 1)
        seen.add(name)


def _read_lines(
    path: Path, byte_limit: int | None, remarks: list[str]
) -> tuple[pa.Table, NDArray[np.int64]]:
    """The lines that are not blank, and their numbers."""
    chunks: list[pa.Array] = []
    numbers: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    with CheckedStream(path, byte_limit=byte_limit, remarks=remarks) as stream:
        for first, lines in stream.batches():
            kept = filled_lines(lines)
            numbers.append(kept + first)
            chunks.append(pa.array([lines[place] for place in kept], pa.string()))
    return pa.table({"line": pa.chunked_array(chunks, pa.string())}), np.concatenate(numbers)


@dataclass(frozen=True, eq=False)
class Rows:
    """A file as a table, and what is needed to speak of its rows in a sentence."""

    table: pa.Table
    path: Path  # for a data set of the hub, its name
    format: Format | Literal["hub"]
    unusable: Mapping[str, str] = field(default_factory=dict)  # why a column cannot be used
    byte_limit: int | None = None
    typed: bool = True  # in CSV every cell is text, whatever it says
    mixed: Mapping[str, str] = field(default_factory=dict)  # columns of numbers and text, as text
    remarks: tuple[
        str, ...
    ] = ()  # what was decided about the file: `is`, `has` or another verb first
    added: tuple[str, ...] = ()  # columns that are no part of the rows: `task` or `split`
    numbers: NDArray[np.int64] | None = None  # the row of the file, where they are not 1, 2, ...
    places: NDArray[np.int64] | None = None  # which rows were kept, where some were left out

    def is_loose(self, name: str) -> bool:
        """Whether the column is text because the file could not say that it is numbers."""
        return not self.typed or name in self.mixed

    def keep(self, kept: NDArray[np.bool_]) -> Rows:
        """Some of the rows, which are still called by their place in the file."""
        places = np.flatnonzero(kept)
        whole = places if self.places is None else self.places[places]
        return replace(self, table=self.table.filter(pa.array(kept)), places=whole)

    def begins_with_data(self) -> bool:
        """Whether what should be names of columns looks like the rows below: then there is no header."""
        if self.typed or not self.table.num_rows:
            return False
        head = self.table.slice(0, _ROWS_LOOKED_AT)
        for name, column in zip(head.column_names, head.columns, strict=True):
            cells = column.to_pylist()
            is_number = [_NUMBER.fullmatch(cell.strip()) is not None for cell in (name, *cells)]
            if name in cells or (all(is_number) and not name.strip().isdecimal()):
                return True  # a name does not stand in its column, nor is it 5.1
        return all(_NUMBER.fullmatch(name.strip()) for name in head.column_names)

    def row_number(self, place: int) -> int:
        """The row of the file, counted from 1 as an editor shows it, of a row of the table."""
        if self.places is not None:
            place = int(self.places[place])
        if self.numbers is not None:
            return int(self.numbers[place])
        if self.format != "csv":
            return place + 1
        numbers = CsvFile(self.path, self.byte_limit, []).row_numbers()
        return next(islice(numbers, place, None), place + 1)

    def where(self, place: int) -> str:
        """The file and the line or the row, as they may stand in a note."""
        return show_place(Path(self.path.name), self.row_number(place))

    def bad(self, should: str, found: str, remedy: str, place: int | None = None) -> NoReturn:
        """Raise the sentence about this file, and about one row of the table."""
        number = None if place is None else self.row_number(place)
        bad_file(self.path, should, found, remedy, number)


def file_format(path: Path) -> tuple[str, Format] | None:
    """The name without its endings, and the format; None where the ending is none of ours."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    stem, dot, ending = name.rpartition(".")
    known = _ENDINGS.get(ending.lower()) if dot and stem else None
    return None if known is None else (stem, known)


def how_to_convert(path: Path) -> str | None:
    """What to do with a file of data that is not read; None of anything else."""
    return _CONVERT.get(path.suffix.lower().removeprefix("."))


def refuse_ending(path: Path) -> NoReturn:
    """Raise the sentence about a file that is not read."""
    endings = ", ".join(f".{ending}" for ending in FORMATS)
    remedy = how_to_convert(path) or "Rename the file, or convert it to one of these formats."
    raise TaskFileError(
        f"The name of a task file should end in one of {endings}, and .gz may follow. Found "
        f"{quoted(path.name)}. {remedy}",
        path=path,
    )


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
