"""Rows without a task or a target are left out and counted; with `strict` they are refused.

What is missing: an empty cell, `null`, NaN; in columns of numbers also `NA`, `None` and the like, and in
the target of a regression whatever is no number. Among labels of text `None` and `NA` may be true ones:
they stay, with a note. Of several targets over the same rows, a row stays as long as it has one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._formats._words import quoted
from taskmix.tasks._loading._layout import task_words
from taskmix.tasks._loading._targets import Target
from taskmix.tasks._row_keys import table_keys

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
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)])
    if not len(keys) / 2 <= len(starts) < len(keys):
        return None
    sizes = np.diff(starts, append=len(keys))
    same = np.empty(len(keys), dtype=np.int64)
    same[order] = np.repeat(np.minimum.reduceat(order, starts), sizes)
    return same
