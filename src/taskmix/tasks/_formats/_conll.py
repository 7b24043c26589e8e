"""CoNLL columns: one token a row, columns separated by TAB, a blank row between sentences.

Where the first row has no TAB, columns are separated by spaces. Rows of a TAB file that begin with
`#` and have no TAB are comments, and `-DOCSTART-` rows mark documents; both are passed over.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks._formats._streams import CheckedStream
from taskmix.tasks._formats._words import bad_file, quoted

_HEAD = 2**16  # bytes from which the separator is told
_CELL = 64  # bytes of a cell in Python
_COLUMN = 4096  # bytes of a column, however few rows it has
_BLANKS = " \f\v\r"  # of which a cell may consist
_DOCUMENT = "-DOCSTART-"
_REMEDY = "Correct that row; a token has to stand in one row with all its tags."


def read_conll(
    path: Path, byte_limit: int | None, remarks: list[str] | None = None
) -> tuple[pa.Table, NDArray[np.int64]]:
    """One row a sentence, whose columns `1`, `2`, ... are lists; and the line where each begins."""
    first, width = 0, 0  # of the first row
    chunks: list[list[pa.Array]] = []
    starts: list[int] = []  # lines
    offsets: list[int] = []  # tokens
    count = 0
    inside = False
    with CheckedStream(path, byte_limit=byte_limit, remarks=remarks) as stream:
        separator = _separator(stream.peek(_HEAD))
        for begin, lines in stream.batches():
            cells_here: list[str] = []
            has_blanks = any(map("".join(lines).__contains__, _BLANKS))
            for number, line in enumerate(lines, begin):
                cells = line.split(separator)
                if not line.strip():
                    inside = False
                    continue
                if separator and len(cells) == 1 and line[0] == "#":
                    continue  # a comment
                if not width:
                    first, width = number, len(cells)
                    stream.allowance.check((_COLUMN + _CELL) * width)
                    chunks = [[] for _ in cells]
                if len(cells) != width or width < 2 or "" in cells or has_blanks:
                    _check(path, number, line, cells, (first, width))
                if cells[0] == _DOCUMENT:
                    inside = False
                    continue
                if not inside:
                    starts.append(number)
                    offsets.append(count + len(cells_here) // width)
                inside = True
                cells_here += cells
            count += len(cells_here) // max(width, 1)
            for place, chunk in enumerate(chunks):
                chunk.append(pa.array(cells_here[place::width], pa.string()))
    if not starts:
        return pa.table({"1": pa.array([], pa.list_(pa.string()))}), np.zeros(0, np.int64)
    ends = pa.array(np.array([*offsets, count], dtype=np.int32))
    lists = [pa.ListArray.from_arrays(ends, pa.concat_arrays(chunk)) for chunk in chunks]
    table = pa.table({str(place): column for place, column in enumerate(lists, start=1)})
    return table, np.array(starts, dtype=np.int64)


def _separator(head: bytes) -> str | None:
    """TAB, or None for any white space, by the first row that may be a token."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    first = next((line for line in lines if not line.startswith(b"#")), lines[0] if lines else b"")
    return "\t" if b"\t" in first else None


def _check(path: Path, number: int, line: str, cells: list[str], known: tuple[int, int]) -> None:
    """Raise what is wrong with a row."""
    first, width = known
    if width < 2:
        should = "A CoNLL row should have a token and at least one tag, separated by TAB."
        bad_file(path, should, quoted(cells[0]), _REMEDY, number)
    if len(cells) != width:
        found = f"{len(cells)} columns beside {width} in line {first}"
        bad_file(path, "All CoNLL rows should have equally many columns.", found, _REMEDY, number)
    wrong = [cell for cell in cells if not cell.strip() or "\r" in cell] or [line] * ("\r" in line)
    if wrong:
        should = "A CoNLL cell should not be empty or hold a carriage return."
        bad_file(path, should, quoted(wrong[0]), _REMEDY, number)
