"""Which row belongs to which task and split, and the order that makes every split a slice.

Rows without a task or a target are left out and counted; with `strict` they are refused. Missing is an
empty cell, `null`, NaN; in columns of numbers also `NA`, `None` and the like, and in the target of a
regression whatever is no number. Among labels of text `None` and `NA` may be true ones: they stay, with
a note. Of several targets over the same rows, a row stays as long as it has one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns._spelling import spell, words_of
from taskmix.tasks._columns._stack import StackedFiles, cell_family, match_column
from taskmix.tasks._formats._words import quoted
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._splits import (
    MAIN_SPLITS,
    divide_rows,
    in_order,
    order_splits,
    put_aside,
    split_name,
)
from taskmix.tasks._loading._targets import Target
from taskmix.tasks._row_keys import table_keys

_SORTED_ROWS = 2**20  # at a time: sorting takes several times the memory of what is sorted
_TAKE_LIMIT = 2**30  # bytes; Arrow's `take` first joins a column, which may then be too long for it
_REMEDY = "Correct that row or take it out."
_NO_DEV = (
    "there is no dev split, so every tenth row of train, by a fixed rule, was put aside as dev"
)
_NO_DEV_BY_CLASS = (
    "there is no dev split, so every tenth row of train, of each class and by a fixed rule, was put "
    "aside as dev"
)
_NO_DEV_OF_ONE = "there is no dev split, and train has only one row, so there is none now either"
_NO_TRAIN = "there is no train split, so it can be evaluated but not trained on"
_DIVIDED = (
    "the table does not say which rows are train, so 80, 10 and 10 in a hundred, by a fixed rule, "
    "became train, dev and test"
)
_DIVIDED_BY_CLASS = (
    "the table does not say which rows are train, so 80, 10 and 10 in a hundred of each class, by a "
    "fixed rule, became train, dev and test"
)
_TOO_FEW = "there are too few rows to give one to each of train, dev and test"
_DEV_AS_TRAIN = "the table has no train rows, so its dev rows became train"
_BRIEFLY = {
    _NO_DEV: "dev is a tenth of train",
    _NO_DEV_BY_CLASS: "dev is a tenth of train",
    _NO_DEV_OF_ONE: "no dev",
    _NO_TRAIN: "no train",
    _DIVIDED: "divided 80/10/10",
    _DIVIDED_BY_CLASS: "divided 80/10/10",
    _TOO_FEW: "too few rows to divide",
    _DEV_AS_TRAIN: "dev became train",
}


Places = NDArray[np.int64] | slice  # of rows


@dataclass(frozen=True, eq=False)
class RowLayout:
    """The rows in the order of tasks and splits, and what had to be decided for that."""

    groups: tuple[str | None, ...]  # what the task column calls the tasks; None without one
    order: NDArray[np.int64]  # rows of the stack
    pieces: tuple[dict[str, slice], ...]  # for each group, the places in `order` of each split
    known: NDArray[np.bool_]  # [row of the stack], whether its label is known from train
    remarks: tuple[tuple[int, str], ...]  # a group, and what was decided about it

    @property
    def divided(self) -> list[tuple[str, ...]]:
        """What the loader did to the splits of each group, in a few words each."""
        words: list[tuple[str, ...]] = [() for _ in self.groups]
        for group, remark in self.remarks:
            words[group] += (_BRIEFLY[remark],)
        return words

    @property
    def trained_on(self) -> NDArray[np.bool_]:
        """[row of the stack], whether it is in `train` of its task."""
        result = np.zeros(len(self.known), dtype=np.bool_)
        for group in self.pieces:
            if "train" in group:
                result[self.order[group["train"]]] = True
        return result

    def tables(self, table: pa.Table) -> list[dict[str, pa.Table]]:
        """The table's rows of each group and split."""
        if not np.array_equal(self.order, np.arange(table.num_rows)):
            if table.nbytes > _TAKE_LIMIT:
                return [
                    {split: self._filter(table, piece) for split, piece in group.items()}
                    for group in self.pieces
                ]
            table = table.take(pa.array(self.order))
        table = table.combine_chunks()
        return [
            {
                split: table.slice(piece.start, piece.stop - piece.start)
                for split, piece in group.items()
            }
            for group in self.pieces
        ]

    def _filter(self, table: pa.Table, piece: slice) -> pa.Table:
        """The rows of one piece, which are in their order, chunk by chunk."""
        mask = np.zeros(table.num_rows, dtype=np.bool_)
        mask[self.order[piece]] = True
        return table.filter(pa.array(mask))

    def arrays(
        self,
        values: NDArray[Any],  # [row], or [token]
        offsets: NDArray[np.int64] | None = None,  # [row + 1], the first token of each row
    ) -> list[dict[str, NDArray[Any]]]:
        """The values of each group and split."""
        ends = np.arange(len(self.order) + 1)
        if offsets is None:
            values = values[self.order]
        else:
            lengths = np.diff(offsets)[self.order]
            ends = np.concatenate(([0], np.cumsum(lengths)))
            shift = np.repeat(offsets[self.order] - ends[:-1], lengths)
            values = values[shift + np.arange(ends[-1])]
        return [
            {split: values[ends[piece.start] : ends[piece.stop]] for split, piece in group.items()}
            for group in self.pieces
        ]


@dataclass
class _Division:
    """Splits while they are being decided."""

    names: list[str]
    codes: NDArray[np.int8]  # [kept row], into `names`
    remarks: list[tuple[int, str]] = field(default_factory=list)

    def code(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)


def find_split_column(stack: StackedFiles, settings: TaskSettings, whole: bool) -> str | None:
    """The column named in settings; of a whole table also `split`, if it names nothing but splits."""
    column = match_column(stack.names, "split")
    if settings.split_column is not None or not whole or column is None:
        return settings.split_column
    cells = stack.column(column)
    if cell_family(cells.type) != "text":
        return None
    words = [word for word in pc.unique(cells.drop_null()).to_pylist() if word.strip()]
    # A cell that is missing beside them gets a sentence.
    return column if words and all(split_name(word) is not None for word in words) else None


def lay_out(
    stack: StackedFiles,
    kept: NDArray[np.bool_],  # [row]
    *,
    task_column: str | None,
    split_column: str | None,
    whole: bool,
    strata: NDArray[np.int64] | None = None,  # [row], of which each split should have its share
    same: Callable[[], NDArray[np.int64] | None] = lambda: None,  # [row], equal for equal inputs
) -> RowLayout:
    """Group the kept rows by task and by split."""
    rows = np.flatnonzero(kept)
    groups: tuple[str | None, ...] = (None,)
    owners = np.zeros(len(rows), dtype=np.int32)
    if task_column is not None:
        words, codes = task_words(stack, task_column)
        present, places_of = np.unique(codes[rows], return_inverse=True)
        owners = places_of.astype(np.int32)
        groups = tuple(words[place] for place in present)
    members = _members(owners, len(groups))
    known = np.zeros(len(stack), dtype=np.bool_)
    if whole and split_column is None:
        division = _Division(list(MAIN_SPLITS), np.zeros(len(rows), dtype=np.int8))
        _divide(division, members, _Kin.of(rows, strata, same))
        known[rows] = True  # where the loader divides, a label may miss train by chance
    else:
        division = _read_division(stack, rows, split_column)
        known[rows] = _complete(division, members, whole, lambda: _Kin.of(rows, strata, same))
    names = order_splits(division.names)
    ranks = np.array([names.index(name) for name in division.names], dtype=np.int16)
    splits = ranks[division.codes]
    places = in_order(owners * len(names) + splits)  # in which rows keep their order
    return RowLayout(
        groups,
        rows[places],
        _pieces(owners[places], splits[places], names, len(groups)),
        known,
        tuple(division.remarks),
    )


def task_words(stack: StackedFiles, column: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The names of tasks, and which one each row has; -1 where it has none."""
    cells = stack.column(column)
    should = f"`{column}` should name the task of every row."
    if cell_family(cells.type) not in ("number", "text", "truth"):
        stack.bad(0, should, quoted(cells[0].as_py()), _REMEDY)
    if cell_family(cells.type) == "text":
        stack.check_characters(column, cells)
    found = spell(stack, column)
    return found.words, found.codes


def _members(owners: NDArray[np.int32], count: int) -> list[Places]:
    """For each group the places of its rows, in their order."""
    if count == 1:
        return [np.s_[:]]
    order = in_order(owners)
    ends = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count))))
    return [order[start:stop] for start, stop in pairwise(ends)]


@dataclass(frozen=True)
class _Kin:
    """What rows have in common, as far as it matters where they go."""

    strata: NDArray[np.int64] | None  # [kept row]
    same: NDArray[np.int64] | None  # [kept row]

    @classmethod
    def of(
        cls,
        rows: NDArray[np.int64],
        strata: NDArray[np.int64] | None,
        same: Callable[[], NDArray[np.int64] | None],
    ) -> _Kin:
        alike = same()
        if strata is not None and len(rows) < len(strata):
            strata = strata[rows]
        if alike is not None and len(rows) < len(alike):
            alike = alike[rows]
        return cls(strata, alike)

    def at(self, places: Places) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Strata and equal rows, of some of the rows."""
        return (
            None if self.strata is None else self.strata[places],
            None if self.same is None else self.same[places],
        )


def _divide(division: _Division, members: list[Places], kin: _Kin) -> None:
    divided = _DIVIDED if kin.strata is None else _DIVIDED_BY_CLASS
    for group, places in enumerate(members):
        count = len(division.codes[places])
        division.codes[places] = divide_rows(count, *kin.at(places))
        division.remarks.append((group, divided if count > 2 else _TOO_FEW))


def _read_division(stack: StackedFiles, rows: NDArray[np.int64], column: str | None) -> _Division:
    if column is None:
        return _Division(list(stack.splits), stack.split_codes[rows].astype(np.int8))
    names, codes = read_splits(stack, column)
    return _Division(names, codes[rows].astype(np.int8))


def read_splits(stack: StackedFiles, column: str) -> tuple[list[str], NDArray[np.int64]]:
    """The splits that a column names, and which one each row has."""
    cells = stack.text(column, "as the name of a split")
    found = words_of(cells)
    should = f"`{column}` should be train, dev (or valid, validation) or test in every row."
    for place in np.flatnonzero(found.codes < 0)[:1]:
        stack.bad(int(place), should, "nothing", _REMEDY)
    for code, word in enumerate(found.words):
        if split_name(word) is None:
            place = int(np.flatnonzero(found.codes == code)[0])
            stack.bad(place, should, quoted(word), _REMEDY)
    names = [split_name(word) or word for word in found.words]
    distinct = list(dict.fromkeys(names))
    codes = np.array([distinct.index(name) for name in names], dtype=np.int64)
    return distinct, codes[found.codes]


def _complete(
    division: _Division,
    members: list[Places],
    whole: bool,
    kin_of_rows: Callable[[], _Kin],
) -> NDArray[np.bool_]:
    """Give every task that has rows to train on some to choose by; which rows were train before."""
    train, dev = division.code("train"), division.code("dev")
    codes = division.codes
    if whole and not (codes == train).any() and (codes == dev).any():
        codes[codes == dev] = train
        division.remarks += [(group, _DEV_AS_TRAIN) for group in range(len(members))]
    known: NDArray[np.bool_] = codes == train
    kin: _Kin | None = None
    for group, places in enumerate(members):
        to_train = np.flatnonzero(codes[places] == train)
        if not isinstance(places, slice):
            to_train = places[to_train]
        if len(to_train) == 0:
            division.remarks.append((group, _NO_TRAIN))
        elif not (codes[places] == dev).any():
            kin = kin or kin_of_rows()  # which may take a while, and mostly is not needed
            codes[to_train[put_aside(len(to_train), *kin.at(to_train))]] = dev
            some = _NO_DEV if kin.strata is None else _NO_DEV_BY_CLASS
            division.remarks.append((group, some if len(to_train) > 1 else _NO_DEV_OF_ONE))
    return known


def _pieces(
    owners: NDArray[np.int32],  # [place], in order
    splits: NDArray[np.int16],  # [place], in order within each owner
    names: tuple[str, ...],
    count: int,
) -> tuple[dict[str, slice], ...]:
    pieces: tuple[dict[str, slice], ...] = tuple({} for _ in range(count))
    keys, starts = np.unique(owners * len(names) + splits, return_index=True)
    for key, (start, stop) in zip(keys, pairwise([*starts, len(owners)]), strict=True):
        owner, split = divmod(int(key), len(names))
        pieces[owner][names[split]] = slice(int(start), int(stop))
    return pieces


_MAY_MEAN_NOTHING = frozenset(
    {"na", "n/a", "nan", "null", "none", "nil", "?", "-", "--", "#n/a", "missing", "unknown"}
)


def leave_out_rows(
    stack: StackedFiles,
    task_column: str | None,
    targets: Sequence[Target | None],
    kept: NDArray[np.bool_],  # changed
) -> list[str]:
    """Take rows out that have no task or no target; what is to be said of them."""
    remarks: list[str | None] = []
    if task_column is not None:
        missing = task_words(stack, task_column)[1] < 0
        remarks.append(_leave_out(stack, missing, f"`{task_column}`", kept))
        kept &= ~missing
    nothing = _missing_everywhere(targets)
    if nothing is not None:
        remarks.append(_leave_out(stack, nothing, _what_is_missing(stack, targets), kept))
        kept &= ~nothing
    return [remark for remark in remarks if remark is not None]


def _missing_everywhere(targets: Sequence[Target | None]) -> NDArray[np.bool_] | None:
    """[row], whether it has none of the targets; None where some target is always there."""
    missing = [None if target is None else target.missing for target in targets]
    found = [each for each in missing if each is not None]
    return np.logical_and.reduce(found) if found and len(found) == len(missing) else None


def _what_is_missing(stack: StackedFiles, targets: Sequence[Target | None]) -> str:
    """The targets as words, and what stands in the place of a number."""
    found = [target for target in targets if target is not None]
    shown = " or ".join(f"`{target.column}`" for target in found[:3])
    if len(found) == 1 and found[0].kind == "regression":
        odd = stack.odd(found[0].column)
        return f"number as {shown}" + (f" ({quoted(odd.value)})" if odd is not None else "")
    return shown


def _leave_out(
    stack: StackedFiles, missing: NDArray[np.bool_], shown: str, kept: NDArray[np.bool_]
) -> str | None:
    """What is to be said of the rows among `kept` that have nothing there; raised, if all or strict."""
    rows = np.flatnonzero(missing & kept)
    if not len(rows):
        return None
    if len(rows) == kept.sum():
        should = f"Some rows should have {shown}."
        stack.parts[0].bad(
            should, f"none in any of {len(rows)} rows", "Check which column is meant."
        )
    if stack.strict:
        should = f"Every row should have {shown}."
        remedy = "Correct that row or take it out; without `strict` such rows are left out."
        stack.bad(int(rows[0]), should, "nothing", remedy)
    have, were = ("has", "was") if len(rows) == 1 else ("have", "were")
    return (
        f"{len(rows)} of {int(kept.sum())} rows {have} no {shown} and {were} left out; the first is "
        f"{stack.where(int(rows[0]))}"
    )


def remarks_on_target(
    stack: StackedFiles, target: Target | None, kept: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Rows that have another target only, and labels that may mean that there is none."""
    if target is None or target.missing is None:
        return ()
    remarks = []
    rows = np.flatnonzero(target.missing & kept)
    if len(rows):
        remarks.append(
            f"{len(rows)} of {int(kept.sum())} rows have no `{target.column}` and count for other "
            f"targets only; the first is {stack.where(int(rows[0]))}"
        )
    if target.words is not None and target.is_text:
        for code, word in enumerate(target.words.words):
            if word.casefold() in _MAY_MEAN_NOTHING:
                count = int(np.count_nonzero(target.words.codes[kept] == code))
                remarks.append(
                    f"`{target.column}` is {quoted(word)} in {count} rows, which was kept as a class; "
                    "empty cells would be left out"
                )
    return tuple(remarks)


def empty_texts(stack: StackedFiles, table: pa.Table, kept: NDArray[np.bool_]) -> tuple[str, ...]:
    """What is to be said of texts without a word."""
    if "text" not in table.column_names:
        return ()
    empty = pc.equal(pc.utf8_trim_whitespace(table.column("text")), "")
    rows = np.flatnonzero(np.asarray(empty.to_numpy(zero_copy_only=False), dtype=np.bool_) & kept)
    if not len(rows):
        return ()
    several = "1 text is" if len(rows) == 1 else f"{len(rows)} texts are"
    return (f"{several} empty, and kept; the first is {stack.where(int(rows[0]))}",)


def equal_inputs(table: pa.Table) -> NDArray[np.int64] | None:
    """[row], the first row with the same inputs; None where most rows are equal to others, or none is.

    Rows of a few categories are often equal and mean no leak: kept together, they could not be divided.
    """
    keys = table_keys(table)
    parts = np.uint64(1 + len(keys) // _SORTED_ROWS)
    same = np.arange(len(keys))
    for part in range(int(parts)):
        rows = np.flatnonzero(keys % parts == part)
        rows = rows[np.argsort(keys[rows])]
        ends = np.flatnonzero(keys[rows[1:]] != keys[rows[:-1]]) + 1
        starts = np.concatenate(([0], ends))[: len(rows)]
        firsts = np.minimum.reduceat(rows, starts) if len(rows) else rows
        same[rows] = np.repeat(firsts, np.diff(starts, append=len(rows)))
    different = int((same == np.arange(len(keys))).sum())
    return same if len(keys) / 2 <= different < len(keys) else None
