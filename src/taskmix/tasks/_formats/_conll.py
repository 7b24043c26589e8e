"""CoNLL columns: one token a row, columns separated by TAB, a blank row between sentences.

Where the first row has no TAB, columns are separated by spaces. Rows of a TAB file that begin with
`#` and have no TAB are comments, and `-DOCSTART-` rows mark documents; both are passed over.

Arrow's CSV reader does the cutting. It cannot see blank rows, so they are made into rows of empty
cells first, by one `bytes.replace` for the whole piece.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from taskmix.files import Allowance
from taskmix.tasks._formats._streams import CheckedStream, allowance
from taskmix.tasks._formats._words import bad_file, quoted

_PIECE = 32 * 2**20  # bytes at most; several times as many are taken while they are cut
_PIECE_SHARE = 256  # of the free memory
_CELL = 64  # bytes of a cell in Python
_COLUMN = 12_000  # bytes that Arrow takes for a column, however few rows it has
_BLANK = re.compile(rb"^[ \t\f\v]+$", re.MULTILINE)
_COMMENT = re.compile(rb"^#[^\t\n]*\n", re.MULTILINE)
_SPACES = re.compile(rb"[ \t]+")
_OUTER_TABS = re.compile(rb"^\t|\t$", re.MULTILINE)
_DOCUMENT = b"-DOCSTART-"


def read_conll(path: Path, byte_limit: int | None, remarks: list[str] | None = None) -> pa.Table:
    """One row a sentence; the columns `1`, `2`, ... are lists of equal lengths."""
    pieces: list[pa.Table] = []
    separator, width = b"", 0
    for piece in _pieces(path, byte_limit, remarks):
        if not width:
            bounds = allowance(path, byte_limit)
            separator, width = _layout(io.BytesIO(piece), bounds)
            bounds.check(_COLUMN * width)
        table = _read_piece(piece, separator, width) if width > 1 else None
        if table is None:
            _explain(path, byte_limit)
        pieces.append(table)
    if not pieces:
        return pa.table({"1": pa.array([], pa.list_(pa.string()))})
    return pa.concat_tables(pieces).combine_chunks()


def sentence_rows(path: Path, byte_limit: int | None) -> Iterator[int]:
    """The row where each sentence begins, as an editor shows it."""
    inside = False
    for number, cells in _parsed_rows(path, byte_limit):
        is_token = bool(cells) and cells[0] != _DOCUMENT
        if is_token and not inside:
            yield number
        inside = is_token


def _pieces(path: Path, byte_limit: int | None, remarks: list[str] | None) -> Iterator[bytes]:
    """Whole sentences, some tens of megabytes at a time."""
    with CheckedStream(path, byte_limit=byte_limit, remarks=remarks) as stream:
        rest = b""
        size = min(_PIECE, max(stream.allowance.free // _PIECE_SHARE, 2**16))
        while block := stream.read(size):
            data = rest + block
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n")
            cut = data.rfind(b"\n\n") + 1
            if data[:cut].strip():
                yield data[:cut]
            rest = data[cut:]
        if rest.strip():
            yield rest


def _layout(lines: Iterable[bytes], bounds: Allowance) -> tuple[bytes, int]:
    """The separator and the number of columns, by the first row that may be a token."""
    first = b""
    for line in (line.rstrip(b"\r\n") for line in lines):
        if line.strip():
            first = first or line
            if not line.startswith(b"#"):
                first = line
                break
    separator = b"\t" if b"\t" in first else b" "
    bounds.check(_CELL * first.count(separator))
    return separator, len(_cells(first, separator))


def _cells(line: bytes, separator: bytes) -> list[bytes]:
    return line.split(b"\t") if separator == b"\t" else line.split()


def _read_piece(piece: bytes, separator: bytes, width: int) -> pa.Table | None:
    """The sentences of the piece, or None where a row is not as it should be."""
    if b"\r" in piece:  # Arrow would end a row there
        return None
    if separator == b" ":
        if any(odd in piece for odd in (b"  ", b"\t", b"\n ", b" \n")) or piece[:1] == b" ":
            piece = _OUTER_TABS.sub(b"", _SPACES.sub(b"\t", piece))
        piece = piece.replace(b" ", b"\t")
    table = _cut(piece, width)
    if table is None:  # rows of blanks and comments are rare: cleaned away only on suspicion
        table = _cut(_BLANK.sub(b"", _COMMENT.sub(b"", piece)), width)
    if table is None:
        return None
    columns = [column.combine_chunks() for column in table.columns]
    trimmed = columns
    if any(blank in piece for blank in (b" ", b"\f", b"\v")):
        trimmed = [pc.ascii_trim_whitespace(column) for column in columns]
    empty = np.array([_lengths(column) == 0 for column in trimmed])
    if (empty.any(axis=0) != empty.all(axis=0)).any():
        return None
    is_token = ~empty[0]
    if _DOCUMENT in piece:
        is_token &= pc.not_equal(columns[0], _DOCUMENT.decode()).to_numpy(zero_copy_only=False)
    is_first = is_token & ~np.concatenate(([False], is_token[:-1]))
    count = np.cumsum(is_token)
    offsets = np.append(count[is_first] - 1, count[-1:].sum()).astype(np.int32)
    return pa.table(
        {
            str(place): pa.ListArray.from_arrays(pa.array(offsets), column.filter(is_token))
            for place, column in enumerate(columns, start=1)
        }
    )


def _cut(piece: bytes, width: int) -> pa.Table | None:
    # Line ends before the first token end no sentence.
    data = piece.strip(b"\n") + b"\n"
    while b"\n\n\n" in data:  # one blank row is as good as many, and each becomes `width` cells
        data = data.replace(b"\n\n\n", b"\n\n")
    data = data.replace(b"\n\n", b"\n" + b"\t" * (width - 1) + b"\n")
    names = [f"f{place}" for place in range(width)]
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            # A row must not be longer than a block.
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=4 * _PIECE),
            parse_options=arrow_csv.ParseOptions(
                delimiter="\t", quote_char=False, double_quote=False
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid:
        return None  # the caller finds the row and says what is wrong


def _lengths(column: pa.StringArray) -> NDArray[np.int32]:
    """Bytes in each cell."""
    _, offsets, _ = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return np.diff(ends)


def _parsed_rows(path: Path, byte_limit: int | None) -> Iterator[tuple[int, list[bytes]]]:
    """Row by row, slowly; no cells where a row is blank. Comments are passed over."""
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        separator, _ = _layout(stream.lines(), stream.allowance)
    with CheckedStream(path, byte_limit=byte_limit) as stream:
        for number, line in enumerate(stream.lines(), start=1):
            if not line.strip():
                yield number, []
            elif separator == b" " or b"\t" in line or not line.startswith(b"#"):
                yield number, _cells(line, separator)


def _explain(path: Path, byte_limit: int | None) -> NoReturn:
    """Say what is wrong with the first bad row."""
    remedy = "Correct that row; a token has to stand in one row with all its tags."
    first, width = 0, 0
    for number, cells in _parsed_rows(path, byte_limit):
        if not cells:
            continue
        if not width:
            first, width = number, len(cells)
            if width < 2:
                should = "A CoNLL row should have a token and at least one tag, separated by TAB."
                bad_file(path, should, quoted(cells[0]), remedy, number)
        found = f"{len(cells)} columns beside {width} in line {first}"
        should = "All CoNLL rows should have equally many columns."
        if len(cells) != width:
            bad_file(path, should, found, remedy, number)
        should = "A CoNLL cell should not be empty or hold a carriage return."
        for cell in cells:
            if not cell.strip() or b"\r" in cell:
                bad_file(path, should, quoted(cell), remedy, number)
    bad_file(path, "A .conll file should have TAB-separated columns.", "something else", remedy)
