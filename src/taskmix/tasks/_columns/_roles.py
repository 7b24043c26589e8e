"""What each column of a task's files is: the one answer that the loader, its notes and `check` use.

| kind       | what it is                                                                       |
|------------|----------------------------------------------------------------------------------|
| `text`     | sentences                                                                        |
| `number`   | numbers in nearly every cell (`_formats/_values.py` has the rule)                |
| `truth`    | true or false, where the file's format knows them                                |
| `category` | other words                                                                      |
| `date`     | dates (`_dates.py`), which are read as numbers                                   |
| `id`       | names or numbers of rows, which are left out                                     |
| `list`     | lists, of words or of numbers                                                    |
| `lists`    | lists of lists or of objects                                                     |
| `constant` | the same value in every row                                                      |
| `empty`    | no values                                                                        |
| `other`    | anything else                                                                    |

An `id` names or numbers the rows of a table, and so says nothing about other rows. Left out are, unless
`features` names them:

- text that differs in nearly every row (95 in a hundred, of 20 rows or more);
- whole numbers that count the rows: 0 to n - 1 or 1 to n in any order, over all files or in each of
  them, or from any number on in the order of the rows (of 20 rows or more);
- whatever differs in every row and is called like it: `id`, `user_id`, `PassengerId`, `uuid`, `index`,
  `Unnamed: 0`, `row`; of an `id` also whole numbers or text that differ in half of the rows: two rows of
  one patient do not make his number a measurement.

Measurements that happen to differ in every row are numbers with no such name, and stay; so does a
`body mass index`, whose numbers are not whole.

A column holds sentences if its cells have several words (four on average) and at least half of them
differ, of ten or more. Under a usual name, `Review` or `body`, two words and a third will do. Categories
are shorter or come again and again: `Married-civ-spouse`, `some college, no degree`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.errors import TaskFileError
from taskmix.tasks._columns._dates import dates_of
from taskmix.tasks._columns._stack import StackedFiles, cell_family
from taskmix.tasks._formats._words import quoted

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
DISTINCT_SHARE = 0.95  # a few double rows, such as posts sent twice, do not make names a feature
LEAST_ROWS = 20  # fewer may differ, or count up, by chance
_LEAST_ROWS_IF_NAMED = 3  # with two rows even a feature differs in both
_MOSTLY_DISTINCT_SHARE = 0.5  # of what is called an id: groups of rows are larger
_IDS = re.compile(r"(.*[_\s.-])?(id|ids|uuid|guid|idx)|unnamed: ?\d+", re.IGNORECASE)
_NAMES = re.compile(
    r"(.*[_\s.-])?(index|key)|row|row[_\s.-]?(number|no|nr|num)",
    re.IGNORECASE,
)
_CAMEL_CASE_NAMES = re.compile(r".*[a-z](Id|ID|UUID)")
_TEXT_NAMES = frozenset(
    {
        "text",
        "texts",
        "review",
        "reviews",
        "sentence",
        "sentences",
        "body",
        "comment",
        "comments",
        "content",
        "message",
        "document",
        "utterance",
        "tweet",
        "post",
        "article",
        "abstract",
        "passage",
        "paragraph",
        "question",
        "query",
        "premise",
        "hypothesis",
        "prompt",
        "description",
    }
)
_PAIRS = (
    ("premise", "hypothesis"),
    ("question", "sentence"),
    ("question", "passage"),
    ("question", "context"),
    ("question", "answer"),
    ("query", "document"),
    ("query", "passage"),
)
_NUMBERED = re.compile(r"(.+?)[_\s.-]?(1|2|a|b)", re.IGNORECASE)
_CELLS_SAMPLED = 2000  # whose words are counted, evenly over the rows
# With fewer words in the mean, names of places or products would pass for sentences.
_MEAN_WORDS, _MEAN_WORDS_IF_NAMED = 4.0, 2.0
# A smaller share of different cells is a category whose names are long.
_DISTINCT_SHARE, _DISTINCT_SHARE_IF_NAMED = 0.5, 1 / 3
_LEAST_DISTINCT = 10  # cells, where the name does not help: a few rows differ by chance


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


def identifies(stack: StackedFiles, name: str) -> str | None:
    """Why the column tells rows apart and no more; None where it may be a feature."""
    cells = stack.column(name)
    count = len(cells) - cells.null_count
    kind = cell_family(cells.type)
    if kind == "text" and count >= LEAST_ROWS and _distinct(cells) >= DISTINCT_SHARE * count:
        return "differs in every row"
    if kind == "number" and not cells.null_count and _counts_rows(stack, cells):
        return "numbers the rows"
    is_id = _IDS.fullmatch(name.strip()) or _CAMEL_CASE_NAMES.fullmatch(name.strip())
    if not is_id and not (_NAMES.fullmatch(name.strip()) and _is_whole(cells)):
        return None
    if count >= _LEAST_ROWS_IF_NAMED and not cells.null_count and _always_differs(stack, cells):
        return "differs in every row"
    if is_id and count >= LEAST_ROWS and _is_whole(cells):
        return (
            "differs in most rows" if _distinct(cells) >= _MOSTLY_DISTINCT_SHARE * count else None
        )
    return None


def _is_whole(cells: pa.ChunkedArray) -> bool:
    """Whether these are words or whole numbers."""
    if not pa.types.is_floating(cells.type):
        return True
    values = cells.drop_null().to_numpy()
    return bool((values == np.rint(values)).all())


def _distinct(cells: pa.ChunkedArray) -> int:
    return int(pc.count_distinct(cells, mode="only_valid").as_py())


def _pieces(stack: StackedFiles, cells: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    starts = stack.starts.tolist()
    return [
        cells.slice(start, size) for start, size in zip(starts, stack.sizes.tolist(), strict=False)
    ]


def _always_differs(stack: StackedFiles, cells: pa.ChunkedArray) -> bool:
    """Over all rows, or in each file where every file counts afresh."""
    if _distinct(cells) == len(cells):
        return True
    return all(_distinct(piece) == len(piece) for piece in _pieces(stack, cells))


def _counts_rows(stack: StackedFiles, cells: pa.ChunkedArray) -> bool:
    if len(cells) < LEAST_ROWS:
        return False
    if pa.types.is_floating(cells.type) and not (cells[0].as_py() or 0.0).is_integer():
        return False  # most columns of measurements end here
    values = cells.cast(pa.float64(), safe=False).to_numpy()
    if not np.isfinite(values).all():
        return False
    if (np.diff(values) == 1).all():
        return True
    pieces = np.split(values, stack.starts[1:-1])
    return _is_count(values) or (len(pieces) > 1 and all(_is_count(piece) for piece in pieces))


def _is_count(values: NDArray[np.float64]) -> bool:
    """Whether these are the numbers from 0 or 1 on, each once."""
    first = values.min()
    if first not in (0, 1) or values.max() != first + len(values) - 1:
        return False
    return len(np.unique(values)) == len(values) and bool((values == np.rint(values)).all())


def holds_sentences(stack: StackedFiles, name: str) -> bool:
    """Whether the cells of a column are texts, and not one of several categories."""
    if cell_family(stack.parts[0].table.column(name).type) not in ("text", "nothing"):
        return False
    cells = stack.column(name)
    if cell_family(cells.type) != "text":
        return False
    is_named = (
        name.strip().lower() in _TEXT_NAMES or _NUMBERED.sub(r"\1", name.lower()) in _TEXT_NAMES
    )
    places = np.unique(np.linspace(0, len(cells) - 1, _CELLS_SAMPLED).astype(np.int64))
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(cells.take(pa.array(places))))
    lengths = pc.list_value_length(words).drop_null().to_numpy()
    if not len(lengths) or lengths.mean() < (_MEAN_WORDS_IF_NAMED if is_named else _MEAN_WORDS):
        return False  # most columns end here, before all cells are compared
    distinct = pc.count_distinct(cells, mode="only_valid").as_py()
    share = distinct / max(len(cells) - cells.null_count, 1)
    if is_named:
        return bool(share >= _DISTINCT_SHARE_IF_NAMED)
    return bool(share >= _DISTINCT_SHARE and distinct >= _LEAST_DISTINCT)


def as_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Two columns in their order, if they are called as pairs usually are."""
    if len(names) != 2:
        return None
    first, second = names
    known = {name.strip().lower(): name for name in names}
    for one, other in _PAIRS:
        if one in known and other in known:
            return known[one], known[other]
    stems = [_NUMBERED.fullmatch(name) for name in (first, second)]
    if stems[0] and stems[1] and stems[0][1].lower() == stems[1][1].lower():
        return (first, second) if stems[0][2].lower() < stems[1][2].lower() else (second, first)
    return None


def unseen_categories(
    stack: StackedFiles,
    inputs: pa.Table,  # of all rows of the stack
    trained_on: NDArray[np.bool_],  # [row]
    used: NDArray[np.bool_],  # [row], whether it is in any split
) -> Iterator[str]:
    """A remark on each column that has some."""
    if not trained_on.any():
        return
    for name in inputs.column_names:
        if cell_family(inputs.schema.field(name).type) != "text":
            continue
        encoded = inputs.column(name).dictionary_encode().unify_dictionaries().combine_chunks()
        codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(), dtype=np.int64)
        known = np.zeros(len(encoded.dictionary) + 1, dtype=np.bool_)
        known[codes[trained_on]] = True
        known[-1] = True  # that of no cell
        places = np.flatnonzero(used & ~known[codes])
        if len(places):
            value = quoted(encoded.dictionary[codes[places[0]]].as_py())
            rows = (
                "1 row outside train has a value"
                if len(places) == 1
                else (f"{len(places)} rows outside train have values")
            )
            yield f"`{name}`: {rows} that train does not have; the first is {value} in " + (
                stack.where(int(places[0]))
            )
