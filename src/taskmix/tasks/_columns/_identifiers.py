"""Columns of a table that name or number its rows, and so say nothing about other rows.

Left out are, unless `features` names them:

- text that differs in nearly every row (95 in a hundred, of 20 rows or more);
- whole numbers that count the rows: 0 to n - 1 or 1 to n in any order, over all files or in each of
  them, or from any number on in the order of the rows (of 20 rows or more);
- whatever differs in every row and is called like it: `id`, `user_id`, `PassengerId`, `uuid`, `index`,
  `Unnamed: 0`, `row`; of an `id` also whole numbers or text that differ in half of the rows: two rows of
  one patient do not make his number a measurement.

Measurements that happen to differ in every row are numbers with no such name, and stay; so does a
`body mass index`, whose numbers are not whole.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from taskmix.tasks._columns._cells import cell_family
from taskmix.tasks._columns._stack import StackedFiles

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
    if pa.types.is_floating(cells.type) and cells[0].as_py() != int(cells[0].as_py() or 0):
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
