"""A column that looks as if it named the task of each row, where one task was found.

It is suggested, and never taken: one task over all its values is as sound. A suggestion that is wrong
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
from collections.abc import Collection

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns import StackedFiles, folded_name, role_of, spell
from taskmix.tasks._reading import InputKind

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
