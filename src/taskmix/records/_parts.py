"""Tables in parts: `part-<first>-<last>.parquet` has the rows after step `first`, up to `last`.

A part begins where another ends, so a missing one shows. A part that spans others stands for them:
merging writes the large part first and deletes the small ones after, and a reader sees each row once
at every moment. Pages carry checksums, and equal rows make equal files.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from taskmix.errors import OptionError
from taskmix.files import (
    Allowance,
    check_parquet,
    delete,
    list_folder,
    make_folder,
    open_plain,
    replacing,
    unreadable,
)
from taskmix.records._damage import DamageError
from taskmix.records._tables import STEPS, Vector, thin_vectors, with_tasks

GROUP = 1 << 16  # rows; what a reader of batches has in memory at once
ATTEMPTS = 10  # of a reader whose files are merged while it reads
PATTERN = re.compile(r"part-(\d{9,})-(\d{9,})\.parquet")


@dataclass(frozen=True, order=True)
class TablePart:
    first: int
    last: int
    path: Path

    @classmethod
    def spanning(cls, folder: Path, first: int, last: int) -> TablePart:
        return cls(first, last, folder / f"part-{first:09d}-{last:09d}.parquet")


def list_parts(folder: Path) -> list[TablePart]:
    """Every part in a folder, in order."""
    matches = ((name, PATTERN.fullmatch(name)) for name in list_folder(folder))
    return sorted(
        TablePart(int(m[1]), int(m[2]), folder / name) for name, m in matches if m is not None
    )


def size_of_parts(folder: Path) -> int:
    """Bytes of all parts in a folder."""
    total = 0
    for part in list_parts(folder):
        with contextlib.suppress(OSError):  # merged since it was listed
            total += part.path.stat().st_size
    return total


def is_part(path: Path) -> bool:
    """Whether a file is ours, by its name."""
    return PATTERN.fullmatch(path.name) is not None


def chain_parts(folder: Path, *, end: int | None = None) -> list[TablePart]:
    """The parts that have each row once, from the first row to `end` or to the last."""
    parts = [part for part in list_parts(folder) if end is None or part.last <= end]
    position, chosen = 0, []
    for part in sorted(parts, key=lambda part: (part.first, -part.last)):
        if part.first == position:
            chosen.append(part)
            position = part.last
        elif part.last > position:
            break  # a gap, or an overlap that nothing of ours makes
    wanted = max((part.last for part in parts), default=0) if end is None else end
    if position < wanted:
        raise DamageError(
            f"`{folder}` should have the rows of steps {position + 1} to {wanted}. Found no whole part "
            "with them. Restore the missing file from a copy, or ask for the run again: it goes "
            "back to before the gap."
        )
    return chosen


def write_part(part: TablePart, table: pa.Table, *, sync: bool = True) -> None:
    """Writes a part's rows."""
    make_folder(part.path.parent)
    with replacing(part.path, sync=sync) as sink, _parquet_writer(sink, table.schema) as writer:
        writer.write_table(table, row_group_size=GROUP)


def iter_batches(
    folder: Path, schema: pa.Schema, columns: Sequence[str] | None, *, rows: int = GROUP
) -> Iterator[pa.RecordBatch]:
    """Every row once, in order, also while the run writes and merges its parts."""
    done, attempts = 0, 0
    while True:
        skip = done
        try:
            for part in _settled_chain(folder):
                for batch in read_part(part, schema, columns, rows=rows):
                    fresh = batch.slice(min(skip, len(batch)))
                    skip -= len(batch) - len(fresh)
                    done += len(fresh)
                    if len(fresh):
                        yield fresh
        except FileNotFoundError:
            # Merged since it was listed: the same rows in the same order are in the larger part.
            attempts += 1
            if attempts == ATTEMPTS:
                raise
        else:
            return


def _settled_chain(folder: Path) -> list[TablePart]:
    """The chain of parts; a gap counts only if it is still there at a second look."""
    for _ in range(ATTEMPTS):
        try:
            return chain_parts(folder)
        except DamageError:
            continue  # listing a folder that changes may miss names
    return chain_parts(folder)


def read_part(
    part: TablePart,
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    *,
    rows: int = GROUP,
    is_known: bool = False,  # this process has written or verified it, so it is no bomb
) -> Iterator[pa.RecordBatch]:
    """A part's rows, its checksums verified."""
    names = list(schema.names if columns is None else columns)
    for name in names:
        if name not in schema.names:
            raise OptionError(
                f"`columns` should be of {', '.join(schema.names)}. Found `{name}`. Check the "
                "spelling."
            )
    try:
        with open_plain(part.path) as file:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            if not parquet.schema_arrow.equals(schema):
                raise _damaged(part, "other columns")
            if not is_known:
                size = os.fstat(file.fileno()).st_size
                bounds = Allowance(part.path, size, is_table=True)
                check_parquet(parquet, file, bounds, columns=names, by_group=True)
            count = 0
            for batch in parquet.iter_batches(rows, columns=names, use_threads=False):
                batch.validate(full=True)  # a page's own header has no checksum either
                count += len(batch)
                yield batch.select(names)
            if names and count != parquet.metadata.num_rows:
                raise _damaged(part, f"{count} of {parquet.metadata.num_rows} rows")
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno is None:  # Arrow's own, about the content
            raise _damaged(part, str(error)) from error
        raise unreadable(error, part.path) from error
    except (pa.ArrowException, UnicodeDecodeError, ValueError) as error:
        raise _damaged(part, str(error)) from error


def verify_parts(parts: Sequence[TablePart], schema: pa.Schema) -> None:
    """Reads every row for its checksums alone."""
    for part in parts:
        try:
            for _ in read_part(part, schema):
                pass
        except FileNotFoundError:
            raise _damaged(part, "no such file") from None


def merge_parts(folder: Path, schema: pa.Schema, task_names: Sequence[str]) -> None:
    """Makes one part of all, each known to be sound; the caller holds the run's lock."""
    parts = chain_parts(folder)
    if len(parts) > 1:
        whole = TablePart.spanning(folder, 0, parts[-1].last)
        with replacing(whole.path) as sink, _parquet_writer(sink, schema) as writer:
            for group in _groups(parts, schema, pa.array(task_names, pa.string())):
                writer.write_table(group, row_group_size=GROUP)
        parts = [whole]
    # From the first on: who has listed the small parts and missed the large one then finds the
    # first of them gone, and lists again.
    for part in list_parts(folder):
        if part not in parts:
            delete(part.path, is_ours=is_part)


def _groups(
    parts: Sequence[TablePart], schema: pa.Schema, task_names: pa.StringArray
) -> Iterator[pa.Table]:
    """Tables of `GROUP` rows, wherever the parts begin and end."""
    vector: Vector | None = None
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for part in parts:
        for batch in read_part(part, schema, is_known=True):
            waiting.append(with_tasks(batch, task_names) if schema is STEPS else batch)
            rows += len(batch)
            if rows >= GROUP:
                table = pa.Table.from_batches(waiting)
                group, vector = _thin(table.slice(0, GROUP), vector)
                yield group
                waiting, rows = table.slice(GROUP).to_batches(), rows - GROUP
    if waiting:
        yield _thin(pa.Table.from_batches(waiting), vector)[0]


def _thin(table: pa.Table, vector: Vector | None) -> tuple[pa.Table, Vector | None]:
    table = table.combine_chunks()
    if "probabilities" not in table.schema.names:
        return table, None
    return thin_vectors(table, vector, keep_first=False)


def _parquet_writer(sink: object, schema: pa.Schema) -> pq.ParquetWriter:
    # The footer has no checksum, so it says no more than it must.
    return pq.ParquetWriter(
        sink, schema, compression="zstd", write_page_checksum=True, write_statistics=False
    )


def _damaged(part: TablePart, found: str) -> DamageError:
    return DamageError(
        f"`{part.path}` should be a whole Parquet part. Found: {found}. Restore the file from a copy; "
        "or ask for the run again, which goes back to before the damage (delete the folder of a "
        "finished run first)."
    )
