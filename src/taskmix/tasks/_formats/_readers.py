"""Task files as Arrow tables, by the ending of their name, each also with `.gz` behind it.

| ending     | a row is                                | columns                                    |
|------------|-----------------------------------------|--------------------------------------------|
| `.jsonl`   | one JSON object a line                  | its keys                                   |
| `.csv`     | one record, comma-separated, quoted `"` | the header; every cell is text until asked |
| `.parquet` | a row                                   | the schema                                 |
| `.conll`   | a sentence                              | `1`, `2`, ...: lists, one item a token     |
| `.txt`     | a line                                  | `line`                                     |

Arrow does the reading. Only where it fails is the file gone over again, slowly, to find the first bad
row and to say what is wrong with it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from taskmix.errors import TaskFileError
from taskmix.files import check_parquet
from taskmix.tasks._formats._conll import read_conll, sentence_rows
from taskmix.tasks._formats._csv import read_csv, records
from taskmix.tasks._formats._jsonl import first_keys, read_jsonl
from taskmix.tasks._formats._streams import CheckedStream, allowance, file_bytes, open_file
from taskmix.tasks._formats._words import bad_file, quoted

Format = Literal["jsonl", "csv", "parquet", "conll", "txt"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "parquet", "conll", "txt")
TABLES = ("jsonl", "csv", "parquet")  # formats whose columns have names

_BLOCK = 2**20


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

    def is_loose(self, name: str) -> bool:
        """Whether the column is text because the file could not say that it is numbers."""
        return not self.typed or name in self.mixed

    def row_number(self, place: int) -> int:
        """The row of the file, counted from 1 as an editor shows it, of a row of the table."""
        numbers = islice(self._row_numbers(), place, None)
        return next(numbers, place + 1)

    def bad(self, should: str, found: str, remedy: str, place: int | None = None) -> NoReturn:
        """Raise the sentence about this file, and about one row of the table."""
        number = None if place is None else self.row_number(place)
        bad_file(self.path, should, found, remedy, number)

    def _row_numbers(self) -> Iterator[int]:
        if self.format in ("parquet", "hub"):
            return
        if self.format == "conll":
            yield from sentence_rows(self.path, self.byte_limit)
            return
        with CheckedStream(self.path, byte_limit=self.byte_limit) as stream:
            if self.format == "csv":
                yield from (number for number, _ in islice(records(stream), 1, None))
            else:
                yield from (n for n, line in enumerate(stream.lines(), 1) if line.strip())


def file_format(path: Path) -> tuple[str, Format] | None:
    """The name without its endings, and the format; None where the ending is none of ours."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    stem, dot, ending = name.rpartition(".")
    for known in FORMATS:
        if dot and stem and ending.lower() == known:
            return stem, known
    return None


def read_rows(path: Path, *, byte_limit: int | None = None) -> Rows:
    r"""The file as a table.

    >>> from pathlib import Path
    >>> _ = Path("rows.csv").write_text("x,label\n1,no\n2.5,yes\n")
    >>> read_rows(Path("rows.csv")).table.to_pydict()
    {'x': ['1', '2.5'], 'label': ['no', 'yes']}
    """
    known = file_format(path)
    if known is None:
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        raise TaskFileError(
            f"The name of a task file should end in one of {endings}, and .gz may follow. Found "
            f"{quoted(path.name)}. Rename the file, or convert it to one of these formats.",
            path=path,
        )
    unusable: dict[str, str] = {}
    mixed: dict[str, str] = {}
    match known[1]:
        case "jsonl":
            table, unusable, mixed = read_jsonl(path, byte_limit)
        case "csv":
            table = read_csv(path, byte_limit)
        case "parquet":
            table = read_parquet(path, byte_limit=byte_limit)
        case "conll":
            table = read_conll(path, byte_limit)
        case "txt":
            table = _read_lines(path, byte_limit)
    _check_names(path, table.column_names)
    return Rows(table, path, known[1], unusable, byte_limit, known[1] != "csv", mixed)


def column_names(path: Path, *, byte_limit: int | None = None) -> tuple[str, ...]:
    """The columns of a .csv, .jsonl (those of its first row) or .parquet file, without its rows."""
    known = file_format(path)
    if known is None or known[1] not in TABLES:
        return ()
    if known[1] == "parquet":
        with _opened_parquet(path, byte_limit) as (file, _):
            return tuple(file.schema_arrow.names)
    if known[1] == "jsonl":
        return first_keys(path, byte_limit)
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        return tuple(next((cells for _, cells in records(stream)), []))


def _check_names(path: Path, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            should, remedy = "Column names should differ.", "Rename one of the two columns."
            bad_file(path, should, f"{quoted(name)} twice", remedy, 1)
        seen.add(name)


def _read_lines(path: Path, byte_limit: int | None) -> pa.Table:
    """The lines that are not blank."""
    chunks: list[pa.Array] = []
    with CheckedStream(path, byte_limit=byte_limit) as stream:
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
    with _opened_parquet(path, byte_limit) as (file, source):
        check_parquet(file, source, allowance(path, byte_limit, is_table=True), columns=columns)
        names = None if columns is None else list(columns)
        table = file.read(names)
        for name in set(columns or ()) - set(table.column_names):
            should = f"The file should have the columns {', '.join(columns or ())}."
            bad_file(path, should, f"no `{name}`", "Give another file.")
        table.validate(full=True)  # among others: that text is UTF-8
        return table


@contextmanager
def _opened_parquet(
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
