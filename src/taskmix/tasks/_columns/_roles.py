"""What each column of a task's files is: the one answer that the loader, its notes and `check` use.

| kind       | what it is                                                                       |
|------------|----------------------------------------------------------------------------------|
| `text`     | sentences (`_sentences.py` has the rule)                                         |
| `number`   | numbers in nearly every cell (`_numbers.py`)                                     |
| `truth`    | true or false, where the file's format knows them                                |
| `category` | other words                                                                      |
| `date`     | dates (`_dates.py`), which are read as numbers                                   |
| `id`       | names or numbers of rows (`_identifiers.py`), which are left out                 |
| `list`     | lists, of words or of numbers                                                    |
| `lists`    | lists of lists or of objects                                                     |
| `constant` | the same value in every row                                                      |
| `empty`    | no values                                                                        |
| `other`    | anything else                                                                    |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from taskmix.errors import TaskFileError
from taskmix.tasks._columns._cells import cell_family
from taskmix.tasks._columns._dates import dates_of
from taskmix.tasks._columns._identifiers import identifies
from taskmix.tasks._columns._sentences import holds_sentences
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._formats import quoted

ColumnKind = Literal[
    "text",
    "number",
    "truth",
    "category",
    "date",
    "id",
    "list",
    "lists",
    "constant",
    "empty",
    "other",
]
UNUSABLE: frozenset[ColumnKind] = frozenset({"list", "lists", "empty", "other"})  # as features
_COUNTED: frozenset[ColumnKind] = frozenset({"number", "category"})  # worth saying how many values
_FEW_VALUES = 50  # of numbers: with more, how many there are says nothing


@dataclass(frozen=True)
class ColumnRole:
    """What a column is."""

    name: str
    kind: ColumnKind
    why: str = ""  # of an id, what tells it; of another kind, what is wrong


_known: WeakKeyDictionary[StackedFiles, dict[str, ColumnRole]] = WeakKeyDictionary()


def role_of(stack: StackedFiles, name: str) -> ColumnRole:
    """What the column is, over all files."""
    known = _known.setdefault(stack, {})
    if name not in known:
        known[name] = _find(stack, name)
    return known[name]


def _find(stack: StackedFiles, name: str) -> ColumnRole:
    try:
        dates = dates_of(stack, name)
        if dates is not None:
            if not dates.can_be_told:
                return ColumnRole(name, "date", "dates with the day before the month")
            odd = f"{dates.others} other cells" if dates.others else ""
            return ColumnRole(name, "date", odd)
        cells = stack.column(name)
    except TaskFileError as error:  # nobody may want it: who does is told by `column`
        return ColumnRole(name, "other", str(error))
    family = cell_family(cells.type)
    if family == "nothing" or cells.null_count == len(cells):
        return ColumnRole(name, "empty")
    if family == "list":
        inner = cells.type.value_type
        plain = cell_family(inner) in ("number", "text", "truth", "nothing")
        return ColumnRole(name, "list" if plain else "lists")
    if family == "other":
        return ColumnRole(name, "other", f"cells of the type {cells.type}")
    if _is_constant(cells):
        says_nothing = family == "text" and not cells[0].as_py().strip()
        return ColumnRole(name, "empty" if says_nothing else "constant")
    if family == "text" and holds_sentences(stack, name):
        return ColumnRole(name, "text")
    if (why := identifies(stack, name)) is not None:
        return ColumnRole(name, "id", why)
    if family == "truth":
        return ColumnRole(name, "truth")
    return ColumnRole(name, "number" if family == "number" else "category")


def _is_constant(cells: pa.ChunkedArray) -> bool:
    if len(cells) < 2 or cells.null_count or cells[0] != cells[len(cells) - 1]:
        return False  # most columns end here
    few = pc.count_distinct(cells.slice(0, 1000)).as_py()
    return bool(few == 1 and pc.count_distinct(cells).as_py() == 1)


def count_values(stack: StackedFiles, role: ColumnRole) -> int:
    """How many different values the column has; 0 where they are lists or nothing."""
    if role.kind in UNUSABLE:
        return 0
    if role.kind == "date" and (dates := dates_of(stack, role.name)) is not None:
        return int(pc.count_distinct(dates.days, mode="only_valid").as_py())
    return int(pc.count_distinct(stack.column(role.name), mode="only_valid").as_py())


def describe_role(stack: StackedFiles, name: str) -> str:
    """A column and what it is, as in a sentence: `stars` (number, 5 values)."""
    role = role_of(stack, name)
    values = count_values(stack, role) if role.kind in _COUNTED else 0
    if not values or (role.kind == "number" and values > _FEW_VALUES):
        return f"{_shown(name)} ({role.kind})"
    return f"{_shown(name)} ({role.kind}, {values} value{'' if values == 1 else 's'})"


def _shown(name: str) -> str:
    return f"`{name}`" if name.isprintable() and len(name) <= 60 else quoted(name)
