"""Rows of two sheets that are about the same run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from taskmix.errors import InputError
from taskmix.mixtures._reading._sheet import Sheet, size_of

Key = tuple[str, float | None]  # its name, and its size where names repeat between sizes


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
                f"{count} in {sheet.name} and not in {other.name}, and left out: {_few(lonely)}."
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
    return str(cell).strip()


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


def _few(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more
