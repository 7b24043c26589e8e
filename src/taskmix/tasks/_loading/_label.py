"""The label column where none is called `label` and nobody has named one.

A column is taken if it is the only sensible one, by the first of these rules that has a candidate:

1. it is called `target`, `class`, `y` or the like;
2. beside a text, it is called as labels of texts often are: `sentiment`, `rating`, `intent`, ...;
3. beside a text, it is the only column that is no text, name of rows, date or list;
4. the same, once columns that are called like tasks (`_task_like.py`) are set aside.

Two candidates of one rule are a question, and so is a table without a usual name: any of its columns
may be meant. The question lists the columns with what they look like.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NoReturn

from taskmix.errors import TaskFileError
from taskmix.tasks._columns import (
    USUAL_LABELS,
    USUAL_LABELS_OF_TEXTS,
    ColumnKind,
    StackedFiles,
    describe_role,
    folded_name,
    match_column,
    role_of,
)
from taskmix.tasks._formats import show_path, tame
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._task_like import names_tasks

# What can be predicted; a constant is refused later, with a better sentence.
_KINDS: frozenset[ColumnKind] = frozenset({"number", "truth", "category", "constant"})
_SHOWN = 12  # columns listed in the question


def guess_label(
    stack: StackedFiles, settings: TaskSettings, beside: Collection[str]
) -> tuple[str, str]:
    """The column that is taken for the label, and the remark that says so."""
    said = {*beside, *(settings.ignore or ()), *(settings.features or ())}
    said |= {settings.text or "", settings.text2 or "", settings.tokens or "", ""}
    names = [name for name in stack.names if name not in said]
    usual = [
        name for name in names if folded_name(name) in USUAL_LABELS and _can_be_label(stack, name)
    ]
    if len(usual) == 1:
        return usual[0], _remark(usual[0], "as columns of that name usually are")
    if usual or not _has_text(stack, settings, names):
        _ask(stack, names)
    left = [name for name in names if role_of(stack, name).kind in _KINDS and not _is_text(name)]
    found = [name for name in left if folded_name(name) in USUAL_LABELS_OF_TEXTS]
    if len(found) == 1:
        return found[0], _remark(found[0], "as columns of that name usually are")
    why = "as the only column beside the text that can be one"
    if not found:
        found = left
    if len(found) > 1:
        found = [name for name in found if not names_tasks(name)]
        why = "as the only column beside the text that is not called like a task"
    if len(found) != 1:
        _ask(stack, names)
    return found[0], _remark(found[0], why)


def _can_be_label(stack: StackedFiles, name: str) -> bool:
    # Lists are several labels of a row, and a usual name says that they are meant.
    return role_of(stack, name).kind in {*_KINDS, "list"}


def _is_text(name: str) -> bool:
    return folded_name(name) in ("text", "text2")


def _has_text(stack: StackedFiles, settings: TaskSettings, names: Iterable[str]) -> bool:
    if settings.features is not None:
        return False
    if settings.text is not None or match_column(stack.names, "text") is not None:
        return True
    return any(role_of(stack, name).kind == "text" for name in names)


def _remark(name: str, why: str) -> str:
    return f"`{name}` was taken for the label, {why}; `label=...` names another"


def _ask(stack: StackedFiles, names: Collection[str]) -> NoReturn:
    some = [describe_role(stack, name) for name in list(names)[:_SHOWN]]
    more = len(names) - len(some)
    listed = ", ".join(some) + (f" and {more} more" if more > 0 else "")
    path = stack.parts[0].path
    error = TaskFileError(
        "There should be a column named label, or one that is plainly to be predicted. "
        f"Found {tame(listed) if listed else 'no columns'} in {show_path(path)}. "
        "Name the column with `label`.",
        path=path,
    )
    error.arguments = ("label",)
    raise error
