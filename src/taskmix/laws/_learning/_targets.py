"""Several columns to explain under one form: each is a group of rows of one long table.

Losses of many data sets, or many measures of one model, follow one form whose constants are their own or
shared. Where the columns differ in size by more than `SAME_UNIT`, each is divided by its typical size first,
and laws come back in the column's own unit (`GroupedLaw.units`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.errors import InputError, OptionError
from taskmix.laws._fitting import Fit, Noise, as_columns, check_lengths, row_weights
from taskmix.laws._forms import (
    Array,
    Columns,
    Expression,
    Program,
    Variable,
    add,
    exp,
    free,
    multiply,
    raise_to,
)
from taskmix.laws._judging import TARGET, Factors
from taskmix.laws._searching import LevelledRows

SAME_UNIT = 10.0  # times, by which typical sizes of columns in one unit may differ
MOST_INPUTS = 8  # in the forms that hold all of them


@dataclass(frozen=True, eq=False)
class LongTable:
    """Rows of all columns to explain, one below the other."""

    columns: dict[str, Array]
    target: Array  # [row], in units
    groups: dict[str, list[str]]  # the column a row explains, and its groups
    names: tuple[str, ...]  # of the columns to explain
    units: dict[str, float]


def is_vector(y: Any) -> bool:
    """Whether several columns are to be explained."""
    if isinstance(y, Mapping) or hasattr(y, "columns") or hasattr(y, "column_names"):
        return True
    return bool(np.ndim(y) == 2 and np.shape(y)[1] > 1)


def long_table(X: Any, Y: Any, groups: Any = None) -> LongTable:
    """The columns of `Y` below each other, with the inputs of their rows."""
    inputs, targets = as_columns(X), as_columns(Y, None if _has_names(Y) else _names(Y))
    if len(targets) < 2:
        raise InputError("There should be two columns to explain, or one alone. Found a table of one.")
    clash = sorted(set(targets) & set(inputs))
    if clash:
        raise OptionError(
            f"The inputs should be different columns, none of them the target. Found {clash[0]} in both."
        )
    for column in targets.values():
        check_lengths(inputs, column)
    count, rows = len(targets), len(next(iter(targets.values())))
    sizes = {name: float(np.median(np.abs(column))) for name, column in targets.items()}
    known = [size for size in sizes.values() if size > 0]
    alike = not known or max(known) <= SAME_UNIT * min(known)
    units = {name: 1.0 if alike or not size else size for name, size in sizes.items()}
    labels = {TARGET: [name for name in targets for _ in range(rows)]}
    if groups is not None:
        factors = Factors.of(groups, rows)
        for name in factors.columns:
            labels[name] = [factors.levels[name][code] for code in factors.codes[name]] * count
    return LongTable(
        {name: np.tile(column, count) for name, column in inputs.items()},
        np.concatenate([column / units[name] for name, column in targets.items()]),
        labels,
        tuple(targets),
        units,
    )


def forms_of_all(columns: Columns) -> list[Expression]:
    """Forms that hold every input: what one column does not depend on has a small constant there."""
    if len(columns) > MOST_INPUTS or len(columns) < 2:
        return []
    names = list(columns)
    linear = [multiply(free(-0.1), Variable(name)) for name in names]
    found = [
        add(free(1.0), *linear),
        multiply(free(1.0), exp(add(*linear))),
        add(free(1.0), multiply(free(1.0), exp(add(*linear)))),
    ]
    if all(np.all(column > 0) for column in columns.values()):
        powers = [raise_to(Variable(name), free(-0.1)) for name in names]
        found += [
            multiply(free(1.0), *powers),
            add(free(1.0), multiply(free(1.0), *powers)),
            add(free(1.0), *(multiply(free(0.1), power) for power in powers)),
        ]
    return found


def group_weights(
    fits: Sequence[Fit], columns: Columns, target: Array, weight: Array, flat: LevelledRows
) -> Array:
    """[row], one over the noise, where rows of groups are at their own levels again."""
    noise: Noise = "absolute" if np.ptp(weight) == 0 else "relative"
    guess = flat.back(Program(fits[0].expression).values(columns))
    return row_weights(columns, target, noise, guess)


def _has_names(Y: Any) -> bool:
    return isinstance(Y, Mapping) or hasattr(Y, "columns") or hasattr(Y, "column_names")


def _names(Y: Any) -> list[str]:
    return [f"y{place}" for place in range(np.shape(Y)[1])]
