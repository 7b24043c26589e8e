"""Two files, of shares and of metrics, as one table of runs: `ratios.csv` and `metrics.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._reading._join import join_runs, run_names
from taskmix.mixtures._reading._metrics import read_metrics, which_rise
from taskmix.mixtures._reading._roles import run_column_of, size_column_of, value_columns
from taskmix.mixtures._reading._shares import read_shares
from taskmix.mixtures._reading._sheet import Sheet, pick, read_sheet
from taskmix.mixtures._table import MixtureTable


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
