"""Labels as they are written: which cells of a column have the same one, and what is to be noted.

Two labels are one if they are the same text after white space around them is taken off and letters are
in Unicode's composed form (NFC). `01` and `1` therefore differ, and so do `Yes` and `yes`, and a whole
number of twenty digits keeps them all. Two things are not a matter of writing:

- formats with types know numbers, so 1 and 1.0 of JSON or Parquet are one label, `1`;
- a file of CSV whose labels are all whole numbers with `.0` behind them is one of whole numbers, which
  is how pandas writes them once a cell of the column is empty.

Where this joins or parts what another rule would not, a note says so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns._stack import StackedFiles, cell_family, cells_of, plain
from taskmix.tasks._formats._values import LARGEST_EXACT, trimmed_cells
from taskmix.tasks._formats._words import quoted

_WHOLE_FLOAT = re.compile(r"(-?(?:0|[1-9]\d*))\.0")
_IN_QUOTES = "has numbers in some rows and text in others; in quotes or not, a number is one label"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


@dataclass(frozen=True, eq=False)
class SpelledColumn:
    """A column as text: the different words in their order, and which one each cell has."""

    words: tuple[str, ...]
    codes: NDArray[np.int64]  # [cell]; -1 where there is none
    remarks: tuple[str, ...] = ()  # what the words leave out of account


def normal(text: str) -> str:
    """The text without white space around it, its letters composed."""
    return unicodedata.normalize("NFC", text.strip())


def normal_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """`normal` of every cell."""
    return pc.utf8_normalize(pc.utf8_trim_whitespace(column), form="NFC")


def words_of(column: pa.ChunkedArray | pa.Array) -> SpelledColumn:
    """The cells of a column of one type; numbers that are whole are written without a point."""
    is_number = cell_family(column.type) == "number"
    return _collect([_Part(_whole_if_all(column), _word)], are_numbers=is_number)


def _whole_if_all(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Floating numbers that are all whole as integers."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = np.asarray(column.drop_null().to_numpy(zero_copy_only=False))
    is_whole = (np.abs(numbers) < LARGEST_EXACT).all() and (numbers == np.rint(numbers)).all()
    return column.cast(pa.int64(), safe=False) if is_whole else column


def spell(stack: StackedFiles, name: str) -> SpelledColumn:
    """The cells of a column of all files, as they are written."""
    cells = stack.column(name)
    is_number = cell_family(cells.type) == "number"
    raw = [cells_of(part, name) for part in stack.parts]
    has_text = any(
        cell_family(each.type) == "text" or pa.types.is_dictionary(each.type) for each in raw
    )
    if not has_text and not _is_rounded(cells):
        return words_of(cells)
    parts = [_read_part(each, is_number=is_number) for each in raw]
    found = _collect(parts, are_numbers=is_number, column=name)
    families = {
        cell_family(each.type)
        for part, each in zip(stack.parts, raw, strict=True)
        if not part.is_loose(name)
    }
    if {"number", "text"} <= families or any(name in part.mixed for part in stack.parts):
        return replace(found, remarks=(*found.remarks, f"`{name}` {_IN_QUOTES}"))
    return found


@dataclass(frozen=True, eq=False)
class _Part:
    cells: pa.ChunkedArray | pa.Array
    word: Callable[[object], str]
    had_points: bool = False  # whole numbers that were written with `.0`


def _is_rounded(cells: pa.ChunkedArray) -> bool:
    """Whether floating numbers are so large that they may stand for several whole ones."""
    if not pa.types.is_floating(cells.type):
        return False
    return bool((np.abs(cells.drop_null().to_numpy()) >= LARGEST_EXACT).any())


def _read_part(cells: pa.ChunkedArray, *, is_number: bool) -> _Part:
    if cell_family(cells.type) == "number":
        is_decimal = pa.types.is_decimal(cells.type)  # exact, and floating no more once it is plain
        return _Part(cells if is_decimal else _whole_if_all(plain(cells)), _word)
    column = plain(cells)
    if not is_number or cell_family(column.type) != "text":
        return _Part(column, _word)
    column = trimmed_cells(column)
    texts = pc.unique(column.drop_null()).to_pylist()
    if texts and all(_WHOLE_FLOAT.fullmatch(text) for text in texts):
        return _Part(column, lambda text: normal(str(text)).removesuffix(".0"), had_points=True)
    return _Part(column, _word)


def _collect(parts: Sequence[_Part], *, are_numbers: bool, column: str = "") -> SpelledColumn:
    """One list of words over all parts."""
    spellings: dict[str, dict[str, None]] = {}  # of each word, as they came up
    codes: list[NDArray[np.int64]] = []
    numbers: dict[str, int] = {}
    for part in parts:
        # Encoding first: far fewer values are then written as text.
        encoded = part.cells.dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):  # without chunks there is nothing to combine
            continue
        places = []
        for value in encoded.dictionary.to_pylist():
            word = part.word(value)
            places.append(numbers.setdefault(word, len(numbers)) if word else -1)
            spellings.setdefault(word, {})[value if isinstance(value, str) else word] = None
        lookup = np.array([*places, -1], dtype=np.int64)  # the last one is that of no cell
        indices = np.asarray(encoded.indices.fill_null(-1).to_numpy(), dtype=np.int64)
        codes.append(lookup[indices])
    found = list(numbers)
    order = sorted(range(len(found)), key=lambda place: _rank(found[place], are_numbers))
    ranks = np.full(len(found) + 1, -1, dtype=np.int64)
    ranks[order] = np.arange(len(order))
    words = tuple(found[place] for place in order)
    remarks = (*_joined(column, spellings, parts), *_parted(column, words)) if column else ()
    return SpelledColumn(words, ranks[np.concatenate([np.zeros(0, np.int64), *codes])], remarks)


def _rank(word: str, are_numbers: bool) -> tuple[int, Decimal, str]:
    """Numbers in their order and before words, where a column is one of numbers."""
    value = number_of(word) if are_numbers else None
    return (1, Decimal(0), word) if value is None else (0, value, word)


def number_of(word: str) -> Decimal | None:
    """The exact value of a word that is a number."""
    return Decimal(word) if _NUMBER.fullmatch(word) else None


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return normal(value)
    if isinstance(value, Decimal):
        return str(int(value)) if value == int(value) else str(value)
    return "" if value != value else repr(value)  # not a number is nothing


def _joined(
    column: str, spellings: dict[str, dict[str, None]], parts: Iterable[_Part]
) -> tuple[str, ...]:
    """The note on labels that are one although they are not the same bytes."""
    several = {word: list(found) for word, found in spellings.items() if word and len(found) > 1}
    if not several:
        return ()
    word, found = next(iter(several.items()))
    more = f", and {len(several) - 1} more like it" if len(several) > 1 else ""
    shown = " and ".join(quoted(text) for text in found[:3])
    if any(part.had_points for part in parts) and f"{word}.0" in found:
        why = "one of the files writes all its whole numbers with `.0`"
    else:
        why = "white space around a label and the Unicode form of its letters do not count"
    return (f"`{column}`: {shown} are one label{more}, because {why}",)


def _parted(column: str, words: Sequence[str]) -> tuple[str, ...]:
    """The notes on labels that another rule would take for one."""
    remarks = []
    for key, why in ((number_of, "equal as numbers"), (_folded, "the same but for case or spaces")):
        known: dict[object, list[str]] = {}
        for word in words:
            value = key(word)
            if value is not None:
                known.setdefault(value, []).append(word)
        several = [found for found in known.values() if len(found) > 1]
        if several:
            shown = " and ".join(quoted(word) for word in several[0][:3])
            more = f", and {len(several) - 1} more like it" if len(several) > 1 else ""
            remarks.append(
                f"`{column}`: {shown} are different labels{more}, as they are written differently; "
                f"they are {why}"
            )
    return tuple(remarks)


def _folded(word: str) -> str:
    return " ".join(word.casefold().split())
