"""Several columns to explain under one form: each is a group of rows of one long table.

Losses of many data sets, or many measures of one model, follow one form whose constants are their own
or shared. Where the columns differ in size by more than `SAME_UNIT`, each is divided by its typical
size first, and laws come back in the column's own unit (`GroupedLaw.units`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError, OptionError
from taskmix.laws._evaluate import Array, Columns
from taskmix.laws._expression import Expression, Number, Variable, free
from taskmix.laws._factors import TARGET, GroupFactors
from taskmix.laws._fit import Observations
from taskmix.laws._group_levels import LevelledRows, have_own_curves, level_groups
from taskmix.laws._noise import LackOfFit, Replicates
from taskmix.laws._normal import add, exp, multiply, raise_to
from taskmix.laws._table import LEAST_ROWS, as_columns, check_lengths, names_of_columns

FAR_OFF = 3.0  # bounds: rows that are told, about four deviations off
NAMED_ROWS = 5  # of them by their numbers
MISFIT = 0.01  # probability below which a law lacks fit
ENOUGH_EQUAL_ROWS = 10  # beyond the first of each, for that to be told
WHOLE_CELLS = 60  # different inputs, for rows with equal ones to be held out together


def sample_weights(given: Any, rows: int) -> Array | None:
    """How many measurements each row is the mean of, checked."""
    if given is None:
        return None
    sample = np.asarray(given, dtype=np.float64)
    if sample.shape != (rows,) or not np.all(np.isfinite(sample) & (sample > 0)):
        found = f"{len(sample)} of them" if sample.shape != (rows,) else f"{sample.min():g}"
        raise InputError(
            f"There should be a weight above 0 for each of the {rows} rows. Found {found}. Leave rows "
            "that should not count out."
        )
    return np.asarray(sample)


def divided_rows(
    columns: Columns, share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows to learn from and those held out, drawn at random.

    Rows with equal inputs go together where there are many different ones, so that no row that is held
    out has its like among the others.
    """
    generator, same = np.random.default_rng(seed), Replicates.of(columns)
    count = len(same.cells)
    aside = max(round(count * share), 2)
    if same.beyond == 0 or len(same.sizes) < WHOLE_CELLS:
        order = generator.permutation(count)
        return np.sort(order[aside:]), np.sort(order[:aside])
    cells = generator.permutation(len(same.sizes))
    taken = cells[: int(np.searchsorted(np.cumsum(same.sizes[cells]), aside)) + 1]
    held_out = np.isin(same.cells, taken)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def row_notes(data: Observations, values: Array, equal: LackOfFit | None) -> list[str]:
    """On rows that lie far off, and on a law that misses more than the noise of equal rows explains."""
    notes = []
    if data.bound < np.inf:
        far = np.flatnonzero(np.abs(data.weight * (values - data.target)) > FAR_OFF * data.bound)
        named = ", ".join(str(place + 1) for place in far[:NAMED_ROWS].tolist())
        more = f" and {len(far) - NAMED_ROWS} more" if len(far) > NAMED_ROWS else ""
        where = f" Far off: row {named}{more}." if len(far) else ""
        notes.append(
            "Deviations have heavy tails, so Huber's loss was used, under which rows that lie far "
            f"off count less.{where}"
        )
    if equal is not None and equal.probability < MISFIT and equal.beyond >= ENOUGH_EQUAL_ROWS:
        notes.append(
            "The law misses more than the noise between rows with equal inputs explains (lack of "
            f"fit: F = {equal.statistic:.3g}, p = {equal.probability:.2g}). Another form, or an "
            "input that is not there, may explain it."
        )
    return notes


SAME_UNIT = 10.0  # times, by which typical sizes of columns in one unit may differ
SEARCHED_ALONE = 3  # groups, at most, where their curves differ
FEW_INPUTS = 3  # up to which so many are; with more a search takes longer
RATES = (0.3, 2.0)  # at which forms fall over the range of an input, to begin with
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
    inputs, targets = as_columns(X), as_columns(Y, names_of_columns(Y) or _names(Y))
    if len(targets) < 2:
        raise InputError(
            "There should be two columns to explain, or one alone. Found a table of one."
        )
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
        factors = GroupFactors.of(groups, rows)
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
    found: list[Expression] = []
    shares = all(np.all(column >= 0) for column in columns.values())
    for power in (1.0, 0.5) if shares else (1.0,):
        terms = [raise_to(Variable(name), Number(power)) for name in names]
        for rate in RATES:
            fall = exp(
                add(
                    *(
                        multiply(free(-rate / np.max(np.abs(columns[name])) ** power), term)
                        for name, term in zip(names, terms, strict=True)
                    )
                )
            )
            found += [multiply(free(1.0), fall), add(free(1.0), multiply(free(1.0), fall))]
        found.append(add(free(1.0), *(multiply(free(-0.1), term) for term in terms)))
    if shares:
        roots = [raise_to(Variable(name), free(0.5)) for name in names]
        found.append(add(free(1.0), *(multiply(free(-0.1), root) for root in roots)))
    if all(np.all(column > 0) for column in columns.values()):
        powers = [raise_to(Variable(name), free(-0.1)) for name in names]
        found += [
            multiply(free(1.0), *powers),
            add(free(1.0), multiply(free(1.0), *powers)),
            add(free(1.0), *(multiply(free(0.1), power) for power in powers)),
        ]
    return found


@dataclass(frozen=True, eq=False)
class SearchedRows:
    """Rows in which a form is looked for, at one level."""

    places: NDArray[np.int64]
    target: Array  # [place]


def rows_to_search(
    columns: Columns, target: Array, factors: GroupFactors, flat: LevelledRows
) -> list[SearchedRows]:
    """All rows at one level; where curves of groups differ, some groups alone too.

    Columns to explain whose curves differ have no curve in common, so there it is only these.
    """
    whole = SearchedRows(np.arange(len(target)), flat.target)
    by = factors.codes[TARGET] if TARGET in factors.columns else factors.cell
    if not have_own_curves(columns, target, factors.cell, by, flat):
        return [whole]
    counts = np.bincount(by)
    least = LEAST_ROWS + 4 * len(columns)
    most = np.argsort(-counts, kind="stable")[: SEARCHED_ALONE if len(columns) <= FEW_INPUTS else 1]
    found = []
    for place in most[counts[most] >= least].tolist():
        here = np.flatnonzero(by == place)
        cells = np.unique(factors.cell[here], return_inverse=True)[1]
        inside = {name: column[here] for name, column in columns.items()}
        alone = level_groups(inside, target[here], cells).target if cells.any() else target[here]
        if np.ptp(alone) > 0 and all(np.ptp(column) > 0 for column in inside.values()):
            found.append(SearchedRows(here, alone))
    return found if found and TARGET in factors.columns else [whole, *found]


def _names(Y: Any) -> list[str]:
    return [f"y{place}" for place in range(np.shape(Y)[1])]
