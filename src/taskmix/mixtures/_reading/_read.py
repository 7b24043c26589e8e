"""Two files, of shares and of metrics, as one table of runs: `ratios.csv` and `metrics.csv`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taskmix.errors import InputError
from taskmix.files import unguard_formula
from taskmix.mixtures._reading._sheet import (
    Sheet,
    looks_like_sizes,
    pick,
    read_metrics,
    read_shares,
    read_sheet,
    size_of,
    which_rise,
)
from taskmix.mixtures._table import MixtureTable, few_names

Key = tuple[str, float | None]  # its name, and its size where names repeat between sizes
RUN_NAMES = ("run", "run_id", "run_name", "name", "id", "index", "unnamed: 0", "")  # best first
SIZE_NAMES = ("size", "parameters", "params", "model_size", "n_params", "num_params")
# Words that say how a run was made; as a domain or a metric they would be nonsense.
_ABOUT_RUNS = frozenset(
    {*RUN_NAMES, "seed", "step", "steps", "date", "group", "experiment", "config"}
)


def read_mixtures(
    ratios: Any,
    metrics: Any = None,
    *,
    run_column: str | None = None,
    size_column: str | None = None,
    metrics_columns: Sequence[str] = (),
    larger_is_better: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> MixtureTable:
    """Runs from two files, one row a run: shares of domains, and metrics.

    A file is .csv, .jsonl, .parquet or another kind of table; frames and mappings of columns do as
    well. A column `run` (or `name`, `index`) joins them. `metrics` may be left out where one file holds
    both and `metrics_columns` says which columns are metrics (`loss_*` is all that begin so). What was
    guessed, rescaled or left out is in the table's `notes`.

    >>> shares = {"run": ["a", "b"], "web": [50, 90], "code": [50, 10]}
    >>> losses = {"run": ["b", "a"], "loss": [3.2, 3.0]}
    >>> table = read_mixtures(shares, losses)
    >>> table.shares.tolist(), table.values.tolist()
    ([[0.5, 0.5], [0.9, 0.1]], [[3.0], [3.2]])
    >>> table.notes[0]
    'The shares in ratios sum to 100 and were read as percent.'
    """
    first = read_sheet(ratios, "ratios")
    second = first if metrics is None else read_sheet(metrics, "metrics")
    sheets = (first,) if metrics is None else (first, second)
    run = run_column_of(sheets, run_column)
    size = size_column_of(sheets, size_column)
    ignored = _ignored(sheets, ignore)
    measured = pick(list(second.columns), metrics_columns, second, "metrics_columns")
    if metrics is None and not measured:
        raise InputError(
            f"`metrics_columns` should say which columns of {first.name} are metrics where there is no "
            "second file. Found none. Name them, as in loss_*, or give a file of metrics.",
            arguments=("metrics_columns",),
        )
    taken = {run, size, *ignored}
    domains, notes = value_columns(
        first, taken | set(measured if metrics is None else ()), "domains"
    )
    if not measured:
        measured, left_out = value_columns(second, taken, "metrics")
        notes += left_out
    joined = join_runs(first, second, run, size)
    shares, told = read_shares(first, domains, run_names(first, run))
    values, also_told = read_metrics(second, measured)
    rising, guessed = which_rise(measured, larger_is_better, lower_is_better)
    sizes = joined.sizes
    if sizes is not None and size is not None:
        different = sorted(set(sizes))
        words = ", ".join(f"{each:,.0f}" for each in different)
        notes.append(f"Sizes of models by column `{size}`: {words}.")
        sizes = sizes if len(different) > 1 else None
    return MixtureTable(
        domains=tuple(domains),
        metrics=tuple(measured),
        runs=joined.runs,
        shares=shares[joined.ratio_rows],
        values=values[joined.metric_rows],
        sizes=None if sizes is None else np.array(sizes),
        larger_is_better=rising,
        notes=(*notes, *told, *joined.notes, *also_told, *guessed),
    )


def _ignored(sheets: Sequence[Sheet], wanted: Sequence[str]) -> set[str]:
    """The columns of both sheets that are to be left out."""
    names = list(dict.fromkeys(name for sheet in sheets for name in sheet.columns))
    return set(pick(names, wanted, sheets[0], "ignore"))


@dataclass(frozen=True)
class JoinedRuns:
    """Which rows belong together, in the order of the first sheet."""

    runs: tuple[str, ...]
    ratio_rows: list[int]
    metric_rows: list[int]
    sizes: list[float] | None
    notes: list[str]


def join_runs(
    ratios: Sheet, metrics: Sheet, run_column: str | None, size_column: str | None
) -> JoinedRuns:
    """Pairs the rows by run, or by order where no column names runs."""
    first = _keys(ratios, run_column, size_column)
    second = first if metrics is ratios else _keys(metrics, run_column, size_column)
    both = size_column in ratios.columns and size_column in metrics.columns
    if size_column is not None and not both:  # one of the two says the sizes: names alone join
        first, second = [(name, None) for name, _ in first], [(name, None) for name, _ in second]
    if run_column is None and len(ratios) != len(metrics):
        raise InputError(
            "Without a column that names runs, both files should have the same rows in the same order. "
            f"Found {len(ratios)} rows in {ratios.name} and {len(metrics)} in {metrics.name}. Name the "
            "column that joins them in `run_column`.",
            arguments=("run_column",),
        )
    for sheet, keys in ((ratios, first), (metrics, second)):
        _check_distinct(sheet, keys)
    places = {key: row for row, key in enumerate(second)}
    known = set(first)
    rows = [row for row, key in enumerate(first) if key in places]
    notes = []
    if run_column is None and metrics is not ratios:
        notes.append("No column names the runs: rows of the two files were paired in order.")
    for sheet, other, lonely in (
        (ratios, metrics, [name for name, size in first if (name, size) not in places]),
        (metrics, ratios, [name for name, size in second if (name, size) not in known]),
    ):
        if lonely:
            count = "1 run is" if len(lonely) == 1 else f"{len(lonely)} runs are"
            notes.append(
                f"{count} in {sheet.name} and not in {other.name}, and left out: {few_names(lonely, 5)}."
            )
    if not rows:
        raise InputError(
            f"Runs of {ratios.name} should be in {metrics.name} too. Found none that are: the first are "
            f"`{first[0][0]}` and `{second[0][0]}`. Name the column that joins them in `run_column`.",
            arguments=("run_column",),
        )
    metric_rows = [places[first[row]] for row in rows]
    sizes = None
    if size_column is not None:
        sheet, there = (ratios, rows) if size_column in ratios.columns else (metrics, metric_rows)
        sizes = [_size(sheet, size_column, row) for row in there]
    names = [first[row][0] for row in rows]
    if len(set(names)) < len(names) and sizes is not None:  # one name at several sizes
        names = [f"{name} at {size:g}" for name, size in zip(names, sizes, strict=True)]
    return JoinedRuns(tuple(names), rows, metric_rows, sizes, notes)


def run_names(sheet: Sheet, run_column: str | None) -> list[str]:
    """What each row is called: by its column, or by its number."""
    if run_column is None:
        return [str(row + 1) for row in range(len(sheet))]
    return [_name(cell) for cell in sheet.columns[run_column]]


def _keys(sheet: Sheet, run_column: str | None, size_column: str | None) -> list[Key]:
    names = run_names(sheet, run_column)
    if size_column is None or size_column not in sheet.columns:
        return [(name, None) for name in names]
    return [(name, _size(sheet, size_column, row)) for row, name in enumerate(names)]


def _name(cell: object) -> str:
    """1 and 1.0 are one run: frames turn whole numbers into others when a cell is empty."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return unguard_formula(str(cell).strip())


def _size(sheet: Sheet, column: str, row: int) -> float:
    cell = sheet.columns[column][row]
    size = size_of(cell)
    if size is None:
        sheet.refuse(
            f"Column `{column}` should be the size of each run's model, such as 60M or 6e7.",
            f"{str(cell)[:40]!r}",
            "Mend the cell, or name another column in `size_column`.",
            row,
        )
    return size


def _check_distinct(sheet: Sheet, keys: Sequence[Key]) -> None:
    key, times = Counter(keys).most_common(1)[0]
    if times > 1:
        rows = [row for row, each in enumerate(keys) if each == key]
        sheet.refuse(
            "Every run should have one row, by a name of its own.",
            f"run `{key[0]}` {times} times, the second time",
            "Give repeated runs names of their own (a and a-2), or name the column of sizes in "
            "`size_column` where they differ in size.",
            rows[1],
        )


def run_column_of(sheets: Sequence[Sheet], given: str | None) -> str | None:
    """The column that joins the sheets; None where rows are runs in the same order."""
    if given is not None:
        for sheet in sheets:
            if given not in sheet.columns:
                raise InputError(
                    f"`run_column` should be a column of {sheet.name}. Found `{given}`, and the "
                    f"columns {', '.join(list(sheet.columns)[:12])}. Check the spelling.",
                    arguments=("run_column",),
                )
        return given
    shared = [name for name in sheets[0].columns if all(name in each.columns for each in sheets)]
    by_word = {name.strip().lower(): name for name in reversed(shared)}
    candidates = [by_word[word] for word in RUN_NAMES if word in by_word]
    for name in candidates:  # Olmix writes three: the first that tells all runs apart
        if all(len(set(map(str, each.columns[name]))) == len(each) for each in sheets):
            return name
    return candidates[0] if candidates else None


def size_column_of(sheets: Sequence[Sheet], given: str | None) -> str | None:
    """The column that says how large each model is."""
    if given is not None:
        if not any(given in sheet.columns for sheet in sheets):
            there = list(dict.fromkeys(name for sheet in sheets for name in sheet.columns))
            raise InputError(
                f"`size_column` should be a column of the files. Found `{given}`, and the columns "
                f"{', '.join(there[:12])}. Check the spelling.",
                arguments=("size_column",),
            )
        return given
    for sheet in sheets:
        for name, cells in sheet.columns.items():
            if name.strip().lower() in SIZE_NAMES or (
                name.strip().lower() == "model" and looks_like_sizes(cells)
            ):
                return name
    return None


def value_columns(
    sheet: Sheet, taken: Collection[str | None], what: str
) -> tuple[list[str], list[str]]:
    """The columns left for shares or metrics, and a note on those that are neither."""
    found: list[str] = []
    words: list[str] = []
    for name in sheet.columns:
        if name in taken:
            continue
        if name.strip().lower() in _ABOUT_RUNS or not sheet.holds_numbers(name):
            words.append(f"`{name}`")
        else:
            found.append(name)
    if not found:
        sheet.refuse(
            f"There should be a column for each of the {what}.",
            f"only {', '.join(list(sheet.columns)[:12])}",
            "Check which file is which.",
        )
    notes = [f"Left out of {sheet.name}, as no {what}: {', '.join(words)}."] if words else []
    return found, notes
