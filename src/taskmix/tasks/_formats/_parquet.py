"""Parquet files, checked by `taskmix.files` before anything is unpacked."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from taskmix.files import check_parquet
from taskmix.tasks._formats._streams import allowance, file_bytes, open_file
from taskmix.tasks._formats._words import bad_file, quoted


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
