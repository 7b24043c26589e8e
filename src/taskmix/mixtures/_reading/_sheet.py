"""A file, or columns in memory, as cells with names: its numbers, shares and metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from taskmix.errors import InputError
from taskmix.files import unguard_formula
from taskmix.mixtures._table import Floats, rounding_of
from taskmix.tasks import frame_table, is_frame, read_rows

ARGUMENTS = ("ignore", "run_column", "size_column", "metrics_columns")  # that remedies may name
NOTHING = frozenset({"", "na", "n/a", "nan", "null", "none", "-"})  # cells that hold no number
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmbgt])", re.IGNORECASE)
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
EXACT = 1e-4  # a sum that is off by less needs no word
LEAST_TOKENS = 1000.0  # sums that are all above are tokens or documents, not shares
# Words in a name by which a metric is better when it is larger, unless another word says that it falls.
_RISES = frozenset(
    {"acc", "accuracy", "f1", "score", "auc", "bleu", "rouge", "em", "recall", "precision"}
)
_FALLS = frozenset({"loss", "bpb", "bits", "ppl", "perplexity", "error", "err", "nll", "entropy"})


@dataclass(frozen=True, eq=False)
class Sheet:
    """Cells by column, as they were written."""

    name: str  # of the file, as sentences say it
    columns: dict[str, list[Any]]
    rows: Any = None  # `tasks.Rows`, which knows the rows of a file; None in memory

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int) -> str:
        """`ratios.csv, line 7`, as an editor counts."""
        return f"{self.name}, row {row + 1}" if self.rows is None else str(self.rows.where(row))

    def refuse(self, should: str, found: str, remedy: str, row: int | None = None) -> NoReturn:
        """Raises the sentence about this sheet."""
        where = self.name if row is None else self.place(row)
        raise InputError(f"{should} Found {found} in {where}. {remedy}", arguments=ARGUMENTS)

    def holds_numbers(self, column: str) -> bool:
        """Whether any cell is a number: a column of words alone is a remark, not a mistake."""
        return any(_number(cell) is not None for cell in self.columns[column])

    def numbers(self, column: str, what: str) -> Floats:
        """The column's numbers, NaN where there is none; a word among them is refused."""
        found = np.full(len(self), np.nan)
        for row, cell in enumerate(self.columns[column]):
            if cell is None or str(cell).strip().lower() in NOTHING:
                continue
            value = _number(cell)
            if value is None:
                self.refuse(
                    f"Column `{column}` should be {what}, a number in each row.",
                    f"{str(cell)[:40]!r}",
                    "Mend the cell, or leave the column out with `ignore`.",
                    row,
                )
            found[row] = value
        return found


def read_sheet(source: Any, what: str) -> Sheet:
    """A file, a frame or a mapping of columns."""
    if isinstance(source, str | Path):
        path = Path(source)
        rows = read_rows(path)
        sheet = Sheet(path.name, _cells(rows.table), rows)
    elif is_frame(source):
        sheet = Sheet(what, _cells(frame_table(source)))
    else:
        raise InputError(
            f"{what[:1].upper()}{what[1:]} should be a file or a table with named columns. Found "
            f"{type(source).__name__}. Give a path, a frame or a mapping of columns."
        )
    if not len(sheet):
        sheet.refuse("There should be a row for each run.", "no rows", "Check the file.")
    return sheet


def pick(names: Sequence[str], wanted: Sequence[str], sheet: Sheet, argument: str) -> list[str]:
    """The columns that were named, where `loss_*` stands for all that begin so."""
    from fnmatch import fnmatchcase

    found: list[str] = []
    for pattern in wanted:
        here = (
            [pattern]
            if pattern in names
            else [name for name in names if fnmatchcase(name, pattern)]
        )
        if not here:
            raise InputError(
                f"`{argument}` should name columns of {sheet.name}. Found `{pattern}`, and the columns "
                f"{', '.join(names[:12])}{' ...' if len(names) > 12 else ''}. Check the spelling.",
                arguments=(argument,),
            )
        found += [name for name in here if name not in found]
    return found


def size_of(cell: Any) -> float | None:
    """`70M` or 7e7 as a number of parameters; None where it is none."""
    match = _SIZE.fullmatch(str(cell).strip())
    if match is not None:
        return float(match[1]) * _UNITS[match[2].lower()]
    value = _number(cell)
    return value if value is not None and np.isfinite(value) and value > 0 else None


def looks_like_sizes(cells: Sequence[Any]) -> bool:
    """Whether every cell says a size with its unit: `1M`, `60M`."""
    return all(_SIZE.fullmatch(str(cell).strip()) is not None for cell in cells)


def _cells(table: Any) -> dict[str, list[Any]]:
    return {
        unguard_formula(str(name)): table.column(place).to_pylist()
        for place, name in enumerate(table.column_names)
    }


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def read_shares(
    sheet: Sheet, domains: Sequence[str], runs: Sequence[str]
) -> tuple[Floats, list[str]]:
    """[run, domain] with rows that sum to 1, and what was done to them in words."""
    columns = [sheet.numbers(name, "the share of a domain") for name in domains]
    shares = np.stack(columns, axis=1)
    for run, place in np.argwhere(~np.isnan(shares) & ~((shares >= 0) & np.isfinite(shares))):
        sheet.refuse(
            "Shares should be finite numbers of at least 0.",
            f"{shares[run, place]:g} for `{domains[place]}` of run `{runs[run]}`",
            "Mend the cell.",
            int(run),
        )
    notes = []
    empty = np.isnan(shares)
    shares = np.nan_to_num(shares)
    sums = shares.sum(axis=1)
    if np.all(np.abs(sums / 100 - 1) <= rounding_of(shares / 100)):
        shares, sums = shares / 100, sums / 100
        notes.append(f"The shares in {sheet.name} sum to 100 and were read as percent.")
    elif np.all(sums >= LEAST_TOKENS):
        shares, sums = shares / sums[:, None], np.ones(len(sums))
        notes.append(
            f"The numbers in {sheet.name} sum to {LEAST_TOKENS:,.0f} or more in every run and were read "
            "as tokens: each run was divided by its sum."
        )
    near = rounding_of(shares)
    wrong = np.flatnonzero(np.abs(sums - 1) > near)
    if len(wrong):
        first = int(wrong[0])
        more = f", and {len(wrong) - 1} more runs like it" if len(wrong) > 1 else ""
        blank = " with empty cells" if empty[first].any() else ""
        sheet.refuse(
            f"The shares of a run should sum to 1, give or take {near:.2g}, as {len(domains)} shares of "
            "so many digits miss it by rounding (or all to 100, or all be tokens).",
            f"{sums[first]:.4g}{blank} for run `{runs[first]}`{more}",
            "Add the domain that is missing, leave out a column that is no domain with `ignore`, or "
            "mend the row.",
            first,
        )
    off = np.abs(sums - 1)
    if off.max() > EXACT:
        notes.append(
            f"The shares of {int((off > EXACT).sum())} of {len(sums)} runs are rounded (they sum to "
            f"{sums.min():.5g} to {sums.max():.5g}) and were divided by their sums."
        )
    if empty.any():
        notes.append(f"{int(empty.sum())} empty shares in {sheet.name} were read as 0.")
    return shares / sums[:, None], notes


def read_metrics(sheet: Sheet, names: Sequence[str]) -> tuple[Floats, list[str]]:
    """[run, metric], NaN where there is no finite number, and notes."""
    values = np.stack([sheet.numbers(name, "a metric") for name in names], axis=1)
    notes = []
    endless = np.isinf(values)
    if endless.any():
        run, place = np.argwhere(endless)[0]
        values[endless] = np.nan
        notes.append(
            f"{_times(int(endless.sum()), 'infinite metric')} left out as not measured; the first is "
            f"`{names[place]}` in {sheet.place(int(run))}."
        )
    return values, notes


def which_rise(
    metrics: Sequence[str], rising: Sequence[str], falling: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """Metrics that are better when larger: those that were named, and those whose names say so."""
    for argument, given in (("larger_is_better", rising), ("lower_is_better", falling)):
        unknown = [name for name in given if name not in metrics]
        if unknown:
            raise InputError(
                f"`{argument}` should name metrics. Found `{unknown[0]}`, and the metrics "
                f"{', '.join(metrics[:12])}. Check the spelling.",
                arguments=(argument,),
            )
    guessed = [
        name
        for name in metrics
        if name not in rising and name not in falling and _rises_by_name(name)
    ]
    notes = []
    if guessed:
        notes.append(
            f"Taken to be better when larger, by their names: {', '.join(f'`{n}`' for n in guessed)}. "
            "Name those that should fall in `lower_is_better` (`--minimise`)."
        )
    kept = {*rising, *guessed}
    return tuple(name for name in metrics if name in kept), notes


def _rises_by_name(name: str) -> bool:
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    return bool(words & _RISES) and not words & _FALLS


def _times(count: int, noun: str) -> str:
    return f"{count} {noun} was" if count == 1 else f"{count} {noun}s were"
