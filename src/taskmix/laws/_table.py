"""Tables of measurements: one row a run, columns of inputs and a target, all numbers.

Columns come as a mapping, a pandas or Arrow table, a NumPy array or a file; what cannot be used is
told in a sentence before any search begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.errors import InputError, ShapeError
from taskmix.laws._evaluate import Array
from taskmix.laws._parse import FUNCTIONS
from taskmix.tasks import read_rows

LEAST_ROWS = 12  # and 4 more for each input; with fewer, held-out rows tell nothing
LARGEST = 1e40  # a sixth power, the square of a cube, is still a number
_NAME = re.compile(r"[^\W\d]\w*")


def as_columns(
    table: Any,
    names: Sequence[str] | None = None,
    *,
    also: Sequence[str] = (),  # names that are taken where the table has them
    places: Sequence[str] | None = None,  # the names of an array's columns
) -> dict[str, Array]:
    """The columns by name; those of an array are named by `places`, `names`, or x0, x1, ..."""
    found: dict[str, Any] = {}
    there = names_of_columns(table)
    if there is not None:
        check_names(names or (), there)
        chosen = [*(names or there), *(name for name in also if name in there)]
        found = {name: table[name] for name in chosen}
    else:
        array = np.asarray(table)
        if array.ndim != 2:
            raise ShapeError(
                f"The inputs should have two dimensions, rows and columns. Found {array.ndim}."
            )
        names = places or names or [f"x{place}" for place in range(array.shape[1])]
        if len(names) != array.shape[1]:
            raise ShapeError(
                f"The inputs should have {len(names)} columns: {', '.join(names)}. Found "
                f"{array.shape[1]}."
            )
        found = {name: array[:, place] for place, name in enumerate(names)}
    return {name: _numbers(name, column) for name, column in found.items()}


def names_of_columns(table: Any) -> list[str] | None:
    """Of a table whose columns have names; None where they have places alone.

    As in scikit-learn, a frame whose columns are numbered is an array.
    """
    names = table if isinstance(table, Mapping) else getattr(table, "columns", None)
    names = getattr(table, "column_names", names)  # `columns` of Arrow are values
    if names is None:
        return None
    others = [name for name in names if not isinstance(name, str)]
    if others and (len(others) < len(names) or isinstance(table, Mapping)):
        raise InputError(
            f"The names of columns should be text. Found {others[0]!r}. Rename the columns."
        )
    return None if others else list(names)


def check_names(names: Sequence[str], there: Sequence[str] | None) -> None:
    """Raises where a table has no column of a name."""
    missing = [name for name in names if name not in (there or ())]
    if missing:
        unnamed = "no names of columns" if there is None else "no columns"
        raise InputError(
            f"The table should have a column `{missing[0]}`. Found {', '.join(there or ()) or unnamed}. "
            "Check the spelling."
        )


def check_rows(columns: Mapping[str, Array], target: Array, name: str = "target") -> list[str]:
    """Raises what a law cannot be found in; gives notes on shapes the columns do not allow."""
    if not columns:
        raise InputError("There should be at least one input. Found none. Name one, such as n.")
    for column_name in columns:
        if not _NAME.fullmatch(column_name) or column_name in FUNCTIONS:
            raise InputError(
                "The name of an input should be a word of letters, digits and underscores that a "
                f"formula can use. Found {column_name[:40]!r}. Rename the column."
            )
    check_lengths(columns, target)
    least = LEAST_ROWS + 4 * len(columns)
    if len(target) < least:
        raise InputError(
            f"A law of {len(columns)} inputs should have at least {least} rows to be found in. Found "
            f"{len(target)}. Measure more, or name fewer inputs."
        )
    for column_name, column in (*columns.items(), (name, target)):
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            what = "no value" if np.isnan(column[bad[0]]) else f"{column[bad[0]]}"
            also = f" and {len(bad) - 1} more rows like it" if len(bad) > 1 else ""
            raise InputError(
                f"Column `{column_name}` should have a finite number in every row. Found {what} in "
                f"row {bad[0] + 1}{also}. Leave such rows out."
            )
        sizes = np.abs(column)
        bad = np.flatnonzero((sizes > LARGEST) | ((sizes < 1 / LARGEST) & (sizes > 0)))
        if len(bad):
            raise InputError(
                f"The numbers of column `{column_name}` should lie between {1 / LARGEST:g} and "
                f"{LARGEST:g} in size, so that their powers can be computed. Found "
                f"{column[bad[0]]:g} in row {bad[0] + 1}. Give them in another unit."
            )
        if np.ptp(column) == 0:
            remedy = "Leave it out." if column_name != name else "Nothing is left to explain."
            raise InputError(
                f"Column `{column_name}` should vary. Found {column[0]:g} in every row. {remedy}"
            )
    _check_different(columns, target, name)
    notes = []
    for column_name, column in columns.items():
        if np.any(column <= 0):
            kind = "negative values" if np.any(column < 0) else "zeros"
            notes.append(
                f"Column `{column_name}` has {kind}, so laws with its logarithm or its negative "
                "powers were left out."
            )
    if np.any(target <= 0):
        notes.append(
            f"Column `{name}` is not positive everywhere, so products were tried with care."
        )
    return notes


def check_lengths(columns: Mapping[str, Array], target: Array) -> None:
    """Raises where an input has more or fewer values than the target."""
    for name, column in columns.items():
        if len(column) != len(target):
            raise ShapeError(
                f"Every input should have one value for each of the {len(target)} values of the "
                f"target. Found {len(column)} in `{name}`."
            )


def _check_different(columns: Mapping[str, Array], target: Array, name: str) -> None:
    """Raises where a column says what another says already."""
    for column_name, column in columns.items():
        if np.array_equal(column, target):
            raise InputError(
                f"The target should not be among the inputs. Found the values of `{name}` in "
                f"`{column_name}`. Leave it out."
            )
    for (first, one), (second, other) in combinations(columns.items(), 2):
        place = int(np.argmax(np.abs(one)))
        factor = float(other[place] / one[place])
        if np.allclose(other, factor * one, rtol=1e-9, atol=0):
            is_copy = "the values" if factor == 1 else f"{factor:g} times the values"
            raise InputError(
                f"Inputs should tell different things. Found in `{second}` {is_copy} of `{first}` in "
                "every row. Leave one of them out."
            )


def read_table(path: str | Path, columns: Sequence[str]) -> dict[str, Any]:
    """Some columns of a .csv, .jsonl or .parquet file, as they stand there; a fit reads the numbers.

    >>> from pathlib import Path
    >>> _ = Path("results.csv").write_text("n,f1\\n1,0.5\\n2,0.7\\n")
    >>> read_table("results.csv", ["f1"])
    {'f1': ['0.5', '0.7']}
    """
    rows = read_rows(Path(path))
    check_names(columns, rows.table.column_names)
    return {name: rows.table.column(name).to_pylist() for name in columns}


def _numbers(name: str, column: Any) -> Array:
    values = np.asarray(column)
    if values.ndim != 1:
        raise ShapeError(
            f"Column `{name}` should be one number a row. Found {values.ndim} dimensions."
        )
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    found = np.empty(len(values))
    for place, value in enumerate(values.tolist()):
        if value is None or value == "":
            found[place] = np.nan
            continue
        try:
            found[place] = float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"Column `{name}` should be numbers. Found {str(value)[:40]!r} in row {place + 1}. "
                "Leave the column out, or turn its words into numbers."
            ) from None
    return found
