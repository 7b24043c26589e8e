"""What is asked for of an origin: its targets, found in the files as they are written there.

Where no column is called `label` and nobody has named one, a column is taken if it is the only sensible
one, by the first of these rules that has a candidate:

1. it is called `target`, `class`, `y` or the like;
2. beside a text, it is called as labels of texts often are: `sentiment`, `rating`, `intent`, ...;
3. beside a text, it is the only column that is no text, name of rows, date or list;
4. the same, once columns that are called like tasks are set aside.

Two candidates of one rule are a question, and so is a table without a usual name: any of its columns
may be meant. The question lists the columns with what they look like.

A column that looks as if it named the task of each row, where one task was found, is suggested, and
never taken: one task over all its values is as sound. A suggestion that is wrong
costs trust, so all of this has to hold:

- the column is called `domain`, `field`, `product`, `language` or the like (`_NAMES`); beside a text,
  where it is no input anyway, also if it is the only other column of categories;
- it holds words, other than yes and no; whole numbers only under a name that says nothing else
  (`_PLAIN_NAMES`);
- it has 2 to 200 values, most of them with 20 rows or more;
- within most of its values the label still differs: otherwise it is the label in other words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.errors import TaskFileError
from taskmix.tasks._columns._roles import ColumnKind, describe_role, role_of
from taskmix.tasks._columns._spelling import spell
from taskmix.tasks._columns._stack import (
    USUAL_LABELS,
    USUAL_LABELS_OF_TEXTS,
    StackedFiles,
    folded_name,
    match_column,
    usual_label,
)
from taskmix.tasks._formats._readers import Rows
from taskmix.tasks._formats._words import Notes, show_path, tame
from taskmix.tasks._loading._inputs import (
    InputPlan,
    plan_inputs,
    plan_written,
    target_column,
    tokens_column,
)
from taskmix.tasks._loading._settings import TaskSettings
from taskmix.tasks._loading._targets import Target, read_target
from taskmix.tasks._loading._written import find_written
from taskmix.tasks._reading import WRITTEN, InputKind

# What can be predicted; a constant is refused later, with a better sentence.
_KINDS: frozenset[ColumnKind] = frozenset({"number", "truth", "category", "constant"})
_SHOWN = 12  # columns listed in the question
FEWEST_ROWS = 20  # of a value: with fewer there is no task to learn
MOST_VALUES = 200
_FEWEST_UNNAMED = (
    3  # values, where only they speak for a column: two are often a property of the rows
)
_ENOUGH = 0.8  # of the values that have so many rows, and of the rows whose label is still open
_LONGEST_NAME = 40  # characters in the mean: names of tasks are short
_PLAIN_NAMES = frozenset(
    {"task", "tasks", "domain", "domains", "dataset", "data_set", "corpus", "subset", "school"}
)
_OTHER_NAMES = """
    field fields product products product_category category source sources language languages lang
    genre genres subject subjects site hospital market platform department store station brand
    publisher channel section forum subreddit topic state region
"""
_NAMES = _PLAIN_NAMES | frozenset(_OTHER_NAMES.split())
# In a table these are features more often than not.
_ONLY_BESIDE_TEXT = frozenset(
    {"category", "topic", "region", "section", "channel", "brand", "department", "type"}
)
_ANSWERS = frozenset({"yes", "no", "y", "n", "true", "false", "t", "f", "0", "1"})
_ENDING = re.compile(r"[_\s.-]?(id|name|code)$")
_ONE = ("text", "text2", "tokens", "answer", "task_column", "split_column", "sequence", "time")
_SEVERAL = ("label", "prompt", "features", "ignore", "values")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One target asked for: its column, and the name of its task where it has one of its own."""

    label: str | None
    settings: TaskSettings
    name: str | None = None


def wanted_as_written(want: Wanted, names: Sequence[str]) -> Wanted:
    """The same with the names of columns as the files have them."""
    label = None if want.label is None else match_column(names, want.label)
    return replace(want, settings=as_written(want.settings, names), label=label or want.label)


def with_targets(
    parts: Mapping[str, Rows], wanted: Sequence[Wanted], notes: Notes, *, strict: bool
) -> dict[str, Rows]:
    """The files, without a `test` that has no target: those of competitions keep it to themselves."""
    first, *_ = parts.values()
    names = first.table.column_names
    label = match_column(names, wanted[0].label or "label") or usual_label(names)
    test = parts.get("test")
    if (
        strict
        or test is None
        or first is test
        or first.format == "conll"
        or label is None
        or label in test.table.column_names
    ):
        return dict(parts)
    name = show_path(Path(test.path.name))
    notes.add(f"{name} has no column `{label}`, so it was left out: nothing can be scored on it")
    return {split: part for split, part in parts.items() if part is not test}


def read_wanted(stack: StackedFiles, want: Wanted, beside: Sequence[str]) -> Target:
    """The target asked for, or the one that is guessed."""
    column = target_column(stack, want.settings, want.label)
    said = want.settings.kind in WRITTEN or want.settings.prompt or want.settings.answer
    if said or column not in stack.names:
        written = find_written(stack, want.settings, want.label, beside)
        if written is not None:
            return Target(written.answer or written.columns[0], written.kind, written=written)
    tokens = tokens_column(stack, want.settings)
    has_names = not stack.parts[0].begins_with_data()
    if column in stack.names or want.label is not None or not has_names:
        return read_target(stack, column, want.settings, tokens)
    column, remark = guess_label(stack, want.settings, beside)
    target = read_target(stack, column, want.settings, tokens)
    return replace(target, remarks=(remark, *target.remarks))


def plan_wanted(
    stack: StackedFiles, want: Wanted, target: Target | None, features_not: Collection[str]
) -> InputPlan:
    """Which columns a target is predicted from."""
    if target is None:
        shape = "symbols" if "symbols" in stack.names else "values"
        return InputPlan("sequences", (shape,))
    if target.written is not None:
        return plan_written(stack, target.written, features_not)
    is_tagging = target.kind == "tagging"
    return plan_inputs(
        stack, want.settings, target=target.column, is_tagging=is_tagging, apart=features_not
    )


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
        return usual[0], _remark(usual[0], "as no column is called `label`")
    if usual or not _has_text(stack, settings, names):
        _ask(stack, names)
    left = [name for name in names if role_of(stack, name).kind in _KINDS and not _is_text(name)]
    found = [name for name in left if folded_name(name) in USUAL_LABELS_OF_TEXTS]
    if len(found) == 1:
        return found[0], _remark(found[0], "as no column is called `label`")
    why = "as it is the only column beside the text that can be one"
    if not found:
        found = left
    if len(found) > 1:
        found = [name for name in found if not names_tasks(name)]
        why = "as it is the only column beside the text that is not called like a task"
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


def names_tasks(name: str) -> bool:
    """Whether a column is called as those are that name tasks."""
    return _stem(name) in _NAMES


def suggest_task_column(
    stack: StackedFiles,
    kind: InputKind,
    used: Collection[str],  # columns that are something: text, label, split
    labels: NDArray[np.int64] | None,  # [row], classes, where there are some
) -> str | None:
    """The sentence that suggests a column, without a full stop; None where none looks like it."""
    if len(stack) < 2 * FEWEST_ROWS:
        return None
    in_table = kind == "table"
    named: dict[str, int] = {}
    unnamed: dict[str, int] = {}
    for name in stack.names:
        if name in used or not name.strip():
            continue
        stem = _stem(name)
        is_named = stem in _NAMES and not (in_table and stem in _ONLY_BESIDE_TEXT)
        values = _task_values(stack, name, labels) if is_named or not in_table else None
        if values is not None:
            (named if is_named else unnamed)[name] = values
    unnamed = {name: values for name, values in unnamed.items() if values >= _FEWEST_UNNAMED}
    if not named and not in_table and len(unnamed) == 1:
        named = unnamed
    if not named:
        return None
    name = next(iter(named))  # the first that the file has
    return f'1 task found; did you mean `task_column="{name}"` ({named[name]} values)?'


def _stem(name: str) -> str:
    folded = folded_name(name)
    return folded if folded in _NAMES else _ENDING.sub("", folded)


def _task_values(stack: StackedFiles, name: str, labels: NDArray[np.int64] | None) -> int | None:
    """How many tasks the column would make; None where it makes none."""
    role = role_of(stack, name)
    is_plain = _stem(name) in _PLAIN_NAMES
    if role.kind != "category" and not (role.kind == "number" and is_plain):
        return None
    cells = stack.column(name)
    if cells.null_count > 0.05 * len(cells):
        return None
    distinct = pc.count_distinct(cells, mode="only_valid").as_py()
    if not 2 <= distinct <= min(MOST_VALUES, len(stack) / FEWEST_ROWS):
        return None
    words = spell(stack, name)
    if {word.casefold() for word in words.words} <= _ANSWERS:
        return None
    if np.mean([len(word) for word in words.words]) > _LONGEST_NAME:
        return None
    known = words.codes >= 0
    counts = np.bincount(words.codes[known], minlength=len(words.words))
    if (counts >= FEWEST_ROWS).mean() < _ENOUGH:
        return None
    if labels is not None:
        known &= labels >= 0
        classes = int(labels.max()) + 1
        pairs = np.bincount(
            words.codes[known] * classes + labels[known], minlength=len(words.words) * classes
        )
        several = (pairs.reshape(-1, classes) > 0).sum(axis=1) > 1
        if several[words.codes[known]].mean() < _ENOUGH:
            return None
    return len(words.words)


def as_written(settings: TaskSettings, names: Sequence[str]) -> TaskSettings:
    """The settings with the columns called as the files call them; unknown names stay."""
    said: dict[str, Any] = {}
    for key in (*_ONE, *_SEVERAL):
        value = getattr(settings, key)
        if isinstance(value, tuple):
            said[key] = tuple(match_column(names, name) or name for name in value)
        elif value is not None:
            said[key] = match_column(names, value) or value
    return replace(settings, **said)


def alike(parts: Mapping[str, Rows]) -> dict[str, Rows]:
    """The files with their columns called as the first one calls them."""
    first, *_ = parts.values()
    return {split: called(part, first.table.column_names) for split, part in parts.items()}


def called(part: Rows, wanted: Sequence[str]) -> Rows:
    """The file with those of its columns renamed that differ from the wanted ones in case alone."""
    known = {folded_name(name): name for name in wanted}
    names = part.table.column_names
    new: dict[str, str] = {}
    for name in names:
        meant = known.get(folded_name(name), name)
        # Two columns of one file that are alike but for case stay two.
        if meant not in names and meant not in new.values():
            new[name] = meant
    if not new:
        return part
    return replace(
        part,
        table=part.table.rename_columns([new.get(name, name) for name in names]),
        unusable={new.get(name, name): why for name, why in part.unusable.items()},
        mixed={new.get(name, name): why for name, why in part.mixed.items()},
    )
