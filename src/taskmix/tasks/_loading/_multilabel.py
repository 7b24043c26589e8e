"""Several labels a row: a list in each cell, or text with a separator between the labels.

Lists are those of JSON and Parquet, and text in brackets, as pandas writes lists into CSV. Lists of one
length that hold nothing but 0 and 1, some of them twice, are marks: the third number says whether a
row has the third label, and labels are called by their number, from 0.

Text is cut at `separator` where settings name one. With `kind = "multilabel"` alone it is cut at the
first of `;`, `|`, `,` and white space that any cell has. Without either it is cut only where that is
safe: several cells have the separator, and their pieces are fewer than the different cells and come
back in other cells, most of them (of a comma or a space, nearly all) as a cell of their own. What only
looks like it stays one label a cell, with a note.

An empty list, or a separator alone, is a row without any of the labels. A cell that is missing is not:
nobody knows its labels, and an empty cell of CSV is such a one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns._spelling import SpelledColumn, spell, words_of
from taskmix.tasks._columns._stack import StackedFiles, cell_family
from taskmix.tasks._formats._words import quoted
from taskmix.tasks._task import MISSING

SEPARATORS = (";", "|", ",", " ")
_LOOSE = (",", " ")  # these stand inside the names of classes as well
_FEWEST_CELLS, _FEWEST_SHARE = 3, 0.05  # that have the separator: fewer may be slips
_LIKELY_SHARE = 0.2  # of the cells: from here on it is noted that they may hold several labels
_KNOWN_SHARE = {";": 0.8, "|": 0.8, ",": 0.9, " ": 0.9}  # of the pieces that come back elsewhere
_MOST_LABELS = 500
_MOST_DIFFERENT = 50_000  # cells that are looked at: labels repeat long before
_REMEDY = "Correct that row or take it out."
_ITEM = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,'"\[\]][^,'"\[\]]*)""")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The labels of every row, one after another."""

    words: SpelledColumn  # of all of them
    offsets: NDArray[np.int64]  # [row + 1], where the labels of each row begin
    missing: NDArray[np.bool_]  # [row], whether nobody knows its labels
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Separator:
    """What may stand between labels."""

    mark: str
    is_safe: bool  # or it is only likely


def read_label_sets(stack: StackedFiles, column: str, separator: str | None) -> LabelSets:
    """The labels of each row of a column."""
    cells = stack.column(column)
    family = cell_family(cells.type)
    should = f"`{column}` should be a list of labels, or text with a separator, in every row."
    if family == "list":
        return _of_lists(stack, column, cells)
    if family == "other":
        stack.bad_where(pc.is_valid(cells), should, quoted(cells[0].as_py()), _REMEDY)
    if family != "text":  # one label a cell
        found = spell(stack, column)
        known = found.codes >= 0
        ends = np.concatenate(([0], np.cumsum(known)))
        words = SpelledColumn(found.words, found.codes[known], found.remarks)
        return LabelSets(words, ends.astype(np.int64), ~known, found.remarks)
    stack.check_characters(column, cells)
    if separator is None and are_bracketed(cells):
        lists = _from_brackets(cells)
        remark = f"`{column}` has lists written as text and was read as several labels a row"
        return _of_pieces(cells, lists, (remark,))
    remarks: tuple[str, ...] = ()
    if separator is None:
        separator = next((mark for mark in SEPARATORS if _has(cells, mark)), None)
        remarks = (
            f"`{column}` has no separator in any row, so that each has one label"
            if separator is None
            else f"`{column}` was cut at {_spoken(separator)}; `separator=...` says otherwise",
        )
    return _of_pieces(cells, _cut(cells, separator), remarks)


def find_separator(cells: pa.ChunkedArray) -> Separator | None:
    """What stands between the labels of text cells; None where each seems to be one label."""
    counted = pc.value_counts(cells.drop_null())
    if not 0 < len(counted) <= _MOST_DIFFERENT:
        return None
    texts = counted.field("values").to_pylist()
    times = np.asarray(counted.field("counts").to_numpy(zero_copy_only=False), dtype=np.int64)
    likely = None
    for mark in SEPARATORS:
        found = _judge(texts, times, mark)
        if found is not None and found.is_safe:
            return found
        likely = likely or found
    return likely


def _judge(texts: Sequence[str], times: NDArray[np.int64], mark: str) -> Separator | None:
    sets = [_pieces(text, mark) for text in texts]
    several = np.array([len(each) > 1 for each in sets], dtype=np.bool_)
    rows = int(times[several].sum())
    if rows < max(_FEWEST_CELLS, _FEWEST_SHARE * times.sum()):
        return None
    if mark in _LOOSE and several.sum() < 2:  # of two labels there is one pair
        return None
    if any(len(set(each)) < len(each) for each in sets):  # nothing has the same label twice
        return None
    different = {frozenset(each) for each in sets}
    holders = Counter(piece for each in different for piece in each)
    alone = {next(iter(each)) for each in different if len(each) == 1}
    if not len(holders) < len(different) or len(holders) > _MOST_LABELS:
        return None
    back = alone if mark in _LOOSE else alone | {p for p, count in holders.items() if count > 1}
    is_safe = len(back) >= _KNOWN_SHARE[mark] * len(holders)
    if mark == " ":  # words of a name are two, and no more
        is_safe &= max(map(len, sets)) > 2
    is_likely = mark != " " and rows >= _LIKELY_SHARE * times.sum()
    return Separator(mark, is_safe) if is_safe or is_likely else None


def likely_remark(column: str, separator: Separator) -> str:
    """What is said of a column that is read as one label a cell, but might be several."""
    return (
        f"`{column}` has {_spoken(separator.mark)} in many cells, and each cell was taken for one "
        'label; if they are several, `kind="multilabel"` says so'
    )


def safe_remark(column: str, separator: Separator) -> str:
    """What is said of a column that was found to hold several labels a cell."""
    return (
        f"`{column}` has several labels in a cell, with {_spoken(separator.mark)} between them; "
        "`kind=...` says otherwise"
    )


def are_bracketed(cells: pa.ChunkedArray) -> bool:
    """Whether every cell of text is a list in brackets, as pandas writes lists."""
    known = cells.drop_null()
    if not len(known) or known[0].as_py().strip()[:1] != "[":
        return False  # most columns end here
    known = pc.utf8_trim_whitespace(known)
    inside = pc.and_(pc.starts_with(known, "["), pc.ends_with(known, "]"))
    return bool(pc.all(inside).as_py())


def mark_labels(
    sets: LabelSets,
    labels: int,
    indices: NDArray[np.int64] | None = None,  # [piece], its label; negative ones do not count
) -> NDArray[np.int8]:
    """[row, label]: 1 where a row has the label, `MISSING` where nobody knows.

    Labels are in the order of the words, unless `indices` have another.
    """
    indices = sets.words.codes if indices is None else indices
    rows = len(sets.missing)
    marks = np.zeros((rows, labels), dtype=np.int8)
    owners = np.repeat(np.arange(rows), np.diff(sets.offsets))
    real = indices >= 0
    marks[owners[real], indices[real]] = 1
    marks[sets.missing] = MISSING
    return marks


def rarest_labels(sets: LabelSets) -> NDArray[np.int64]:
    """[row] the rarest label that it has, so that splits can share those out; -1 without any."""
    codes = sets.words.codes
    counts = np.bincount(codes, minlength=len(sets.words.words))
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(counts))
    found = np.full(len(sets.missing), len(counts), dtype=np.int64)
    owners = np.repeat(np.arange(len(found)), np.diff(sets.offsets))
    np.minimum.at(found, owners, rank[codes])
    by_rank = np.append(np.argsort(counts, kind="stable"), -1)
    return np.asarray(by_rank[found], dtype=np.int64)


def refuse_vectors(stack: StackedFiles, column: str, cells: pa.ChunkedArray) -> None:
    """Says what to do with a target that is a list of numbers."""
    place = int(pc.index(pc.is_valid(cells), pa.scalar(True)).as_py())
    stack.bad(
        max(place, 0),
        f"`{column}` should be one number a row, or a list of labels.",
        f"lists of numbers such as {quoted(cells[max(place, 0)].as_py())}",
        "Give each number a column of its own and name all of them as `label`: each is then a task on "
        "the same rows.",
    )


def _of_lists(stack: StackedFiles, column: str, cells: pa.ChunkedArray) -> LabelSets:
    should = (
        f"`{column}` should be a list of labels, which are text or whole numbers, in every row."
    )
    flat, offsets = stack.items(cells, should, may_miss=True)
    missing = np.asarray(pc.is_null(cells).to_numpy(), dtype=np.bool_)
    family = cell_family(flat.type)
    blank = pc.equal(pc.utf8_trim_whitespace(flat), "") if family == "text" else pa.array([False])
    if (place := pc.index(blank, pa.scalar(True)).as_py()) >= 0:
        row = int(np.searchsorted(offsets, place, side="right")) - 1
        stack.bad(row, should, quoted(flat[place].as_py()), _REMEDY)
    if pa.types.is_floating(flat.type):
        values = flat.to_numpy(zero_copy_only=False)
        if not (np.isfinite(values).all() and (values == np.rint(values)).all()):
            refuse_vectors(stack, column, cells)
    marks = _as_marks(flat, np.diff(offsets)[~missing]) if family in ("number", "truth") else None
    if marks is not None:
        count = marks.shape[1]
        sizes = np.zeros(len(missing), dtype=np.int64)
        sizes[~missing] = marks.sum(axis=1)
        words = SpelledColumn(tuple(map(str, range(count))), np.nonzero(marks)[1].astype(np.int64))
        remark = f"`{column}` has lists of {count} zeros and ones, read as marks of {count} labels"
        return LabelSets(words, np.concatenate(([0], np.cumsum(sizes))), missing, (remark,))
    if family == "nothing":
        flat = flat.cast(pa.string())
    return LabelSets(words_of(flat), offsets, missing)


def _as_marks(flat: pa.Array, lengths: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """[row, label], where lists are marks; None where they name labels."""
    if not len(lengths) or lengths.min() != lengths.max() or lengths[0] < 2:
        return None
    values = flat.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if not np.isin(values, (0, 1)).all():
        return None
    marks = values.reshape(len(lengths), -1) == 1
    twice = lengths[0] > 2 or bool((marks[:, 0] == marks[:, 1]).any())
    return marks if twice else None


def _of_pieces(
    cells: pa.ChunkedArray, lists: pa.ChunkedArray, remarks: tuple[str, ...]
) -> LabelSets:
    """The pieces of each cell that are not blank."""
    rows = len(cells)
    missing = np.asarray(pc.is_null(cells).to_numpy(), dtype=np.bool_)
    whole = lists.combine_chunks()
    whole = whole if isinstance(whole, pa.Array) else pa.array([], pa.list_(pa.string()))
    flat = pc.utf8_trim_whitespace(pc.list_flatten(whole))
    owners = np.asarray(pc.list_parent_indices(whole).to_numpy(), dtype=np.int64)
    kept = np.asarray(pc.not_equal(flat, "").to_numpy(zero_copy_only=False), dtype=np.bool_)
    sizes = np.bincount(owners[kept], minlength=rows)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return LabelSets(words_of(flat.filter(pa.array(kept))), offsets, missing, remarks)


def _cut(cells: pa.ChunkedArray, separator: str | None) -> pa.ChunkedArray:
    if separator is None:
        return pa.chunked_array(
            [
                pa.array(
                    [None if c is None else [c] for c in cells.to_pylist()], pa.list_(pa.string())
                )
            ]
        )
    if separator.isspace():
        return pc.utf8_split_whitespace(cells)
    return pc.split_pattern(cells, separator)


def _has(cells: pa.ChunkedArray, mark: str) -> bool:
    return bool(pc.any(pc.match_substring(pc.utf8_trim_whitespace(cells), mark)).as_py())


def _pieces(text: str, mark: str) -> list[str]:
    pieces = text.split() if mark == " " else text.split(mark)
    return [piece.strip() for piece in pieces if piece.strip()]


def _from_brackets(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    def items(text: str) -> list[str]:
        inside = text.strip()[1:-1]
        found = _ITEM.findall(inside)
        return [re.sub(r"\\(.)", r"\1", single or double or bare) for single, double, bare in found]

    texts = [None if cell is None else items(cell) for cell in cells.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.list_(pa.string()))])


def _spoken(mark: str) -> str:
    return "white space" if mark.isspace() else f"`{mark}`"
