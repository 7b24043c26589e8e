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

Arrow does the reading. Only where it fails is the file gone over again, slowly, to find the first bad
row and to say what is wrong with it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from taskmix.tasks._formats._conll import read_conll
from taskmix.tasks._formats._csv import CsvFile, read_csv
from taskmix.tasks._formats._endings import TABLES, file_format, refuse_ending
from taskmix.tasks._formats._ipc import read_ipc
from taskmix.tasks._formats._json import begins_with_a_list, read_json
from taskmix.tasks._formats._jsonl import first_keys, read_jsonl
from taskmix.tasks._formats._parquet import opened_parquet, read_parquet
from taskmix.tasks._formats._rows import Rows
from taskmix.tasks._formats._streams import CheckedStream, add_note
from taskmix.tasks._formats._words import bad_file, quoted
from taskmix.tasks._formats._xlsx import read_xlsx

_BLOCK = 2**20


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
    return rows


def _read(path: Path, form: str, byte_limit: int | None, remarks: list[str]) -> Rows:
    match form:
        case "jsonl" if begins_with_a_list(path, byte_limit):
            add_note(remarks, "is one list, and was read as a JSON document")
            return _of_json(path, byte_limit, remarks)
        case "jsonl":
            table, unusable, mixed = read_jsonl(path, byte_limit, remarks)
            return Rows(
                table, path, "jsonl", unusable, byte_limit, mixed=mixed, remarks=tuple(remarks)
            )
        case "json":
            return _of_json(path, byte_limit, remarks)
        case "csv" | "tsv":
            table = read_csv(path, byte_limit, remarks)
            return Rows(table, path, "csv", {}, byte_limit, typed=False, remarks=tuple(remarks))
        case "xlsx":
            book = read_xlsx(path, byte_limit, remarks)
            return Rows(
                book.table,
                path,
                "xlsx",
                book.unusable,
                byte_limit,
                mixed=book.mixed,
                remarks=tuple(remarks),
                added=book.added,
                numbers=book.numbers,
            )
        case "parquet":
            return Rows(read_parquet(path, byte_limit=byte_limit), path, "parquet", {}, byte_limit)
        case "arrow":
            return Rows(read_ipc(path, byte_limit), path, "arrow", {}, byte_limit)
        case "conll":
            table = read_conll(path, byte_limit, remarks)
            return Rows(table, path, "conll", {}, byte_limit, remarks=tuple(remarks))
        case _:
            table = _read_lines(path, byte_limit, remarks)
            return Rows(table, path, "txt", {}, byte_limit, remarks=tuple(remarks))


def _of_json(path: Path, byte_limit: int | None, remarks: list[str]) -> Rows:
    found = read_json(path, byte_limit, remarks)
    return Rows(
        found.table,
        path,
        "jsonl" if found.is_lines else "json",
        found.unusable,
        byte_limit,
        mixed=found.mixed,
        remarks=tuple(remarks),
        added=found.added,
    )


def column_names(path: Path, *, byte_limit: int | None = None) -> tuple[str, ...]:
    """The columns of a table, without its rows where that can be; of .jsonl those of its first row."""
    known = file_format(path)
    if known is None or known[1] not in TABLES:
        return ()
    if known[1] == "parquet":
        with opened_parquet(path, byte_limit) as (file, _):
            return tuple(file.schema_arrow.names)
    if known[1] == "jsonl" and not begins_with_a_list(path, byte_limit):
        return first_keys(path, byte_limit)
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


def _read_lines(path: Path, byte_limit: int | None, remarks: list[str]) -> pa.Table:
    """The lines that are not blank."""
    chunks: list[pa.Array] = []
    with CheckedStream(path, byte_limit=byte_limit, remarks=remarks) as stream:
        rest = b""
        while block := stream.read(_BLOCK):
            whole, end, rest = (rest + block).rpartition(b"\n")
            if end:
                chunks.append(_cut_lines(whole))
        chunks.append(_cut_lines(rest))
    return pa.table({"line": pa.chunked_array(chunks, pa.string())})


def _cut_lines(data: bytes) -> pa.Array:
    lines = pc.split_pattern(pa.array([data.decode()]), "\n").flatten()
    return lines.filter(pc.greater(pc.binary_length(pc.utf8_trim_whitespace(lines)), 0))
