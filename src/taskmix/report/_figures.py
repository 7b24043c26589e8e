"""The figures of the page: for each its panels, the table behind each panel, and what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.report import _charts as charts
from taskmix.report._data import ReportData
from taskmix.report._scoreboard import Cell, Scoreboard
from taskmix.report._words import counted, decimals_for, number, overall_name, with_interval

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Panel:
    """One chart: a specification, by name, and its own rows."""

    id: str
    title: str
    spec: str
    columns: Columns
    description: str  # for those who hear the page
    note: str = ""


@dataclass(frozen=True)
class Figure:
    id: str
    caption: str
    panels: tuple[Panel, ...]
    legend: Literal["label", "task"]
    specs: Mapping[str, charts.Spec] = field(default_factory=dict)
    wide: bool = False  # one panel a row


@dataclass(frozen=True)
class Palette:
    """Which tasks have a colour of their own: all if they are few, else the largest."""

    coloured: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def other_name(self) -> str:
        return f"{len(self.others)} other tasks"


def palette(data: ReportData) -> Palette:
    names = tuple(task.name for task in data.tasks)
    if len(names) <= charts.TASK_COLOURS:
        return Palette(names, ())
    order = sorted(range(len(names)), key=lambda place: -(data.tasks[place].size or 0))
    kept = set(order[: charts.TASK_COLOURS])
    return Palette(
        tuple(name for place, name in enumerate(names) if place in kept),
        tuple(name for place, name in enumerate(names) if place not in kept),
    )


def score_figure(data: ReportData, board: Scoreboard) -> Figure | None:
    """Dots with intervals; one panel a metric, since metrics share no axis."""
    panels, specs = [], {}
    metrics = dict.fromkeys(row.task.metric for row in board.rows if row.task is not None)
    for place, metric in enumerate(metrics):
        rows = [
            (row.task.name, row.cells)
            for row in board.rows
            if row.task and row.task.metric == metric
        ]
        if board.overall and board.measure == "mean" and len(metrics) == 1 and len(rows) > 1:
            rows.insert(0, (_fresh(overall_name(board), rows), board.overall.cells))
        higher = all(
            row.task.higher_is_better
            for row in board.rows
            if row.task and row.task.metric == metric
        )
        splits = sorted({row.split for row in board.rows if row.task and row.task.metric == metric})
        x_title = f"{' / '.join(splits)} {metric}" + ("" if higher else " (lower is better)")
        crowded = len(rows) > 20
        height = max(16, 5 * len(data.labels)) if crowded else max(24, 11 * len(data.labels) + 6)
        name = f"scores-{place}"
        specs[name] = charts.dots(
            rows=[row for row, _ in rows], labels=data.labels, x_title=x_title, row_height=height
        )
        panels.append(
            Panel(
                id=f"chart-{name}",
                title=metric,
                spec=name,
                columns=_dot_columns(data.labels, rows),
                description=f"{x_title} of {counted(len(rows), 'row')} for each label, with "
                "intervals. The table above has the same numbers.",
            )
        )
    if not panels:
        return None
    many = any(cell and cell.interval.n > 1 for row in board.rows for cell in row.cells)
    bars = (
        "Dots are means over seeds, bars their 95 % intervals."
        if many
        else "One seed: no intervals."
    )
    return Figure("scores", bars, tuple(panels), "label", specs, wide=True)


def _fresh(name: str, rows: Sequence[tuple[str, Any]]) -> str:
    """A row's name that no task has."""
    while any(name == taken for taken, _ in rows):
        name += " "
    return name


def _dot_columns(
    labels: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell | None]]]
) -> Columns:
    columns: Columns = {
        key: [] for key in ("row", "series", "mean", "low", "high", "shown", "seeds")
    }
    means = [cell.interval.mean for _, cells in rows for cell in cells if cell]
    decimals = decimals_for(means)
    for row, cells in rows:
        for label, cell in zip(labels, cells, strict=True):
            if cell is None:
                continue
            interval = cell.interval
            columns["row"].append(row)
            columns["series"].append(label)
            columns["mean"].append(rounded(interval.mean))
            columns["low"].append(rounded(interval.low if interval.n > 1 else interval.mean))
            columns["high"].append(rounded(interval.high if interval.n > 1 else interval.mean))
            columns["shown"].append(with_interval(interval, decimals))
            columns["seeds"].append(str(interval.n))
    return columns


def rounded(value: float) -> float | None:
    """Four significant digits are as much as a pixel shows; JSON knows no NaN."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def series_columns(
    series: Sequence[tuple[str, NDArray[np.float64], Sequence[NDArray[np.float64]]]],
    names: Sequence[str],
) -> Columns:
    """Long columns from (name, steps, one array a field); rows whose first field is NaN are left out."""
    columns: Columns = {key: [] for key in ("series", "step", *names)}
    for name, steps, fields in series:
        for place in np.flatnonzero(np.isfinite(fields[0])):
            columns["series"].append(name)
            columns["step"].append(int(steps[place]))
            for key, values in zip(names, fields, strict=True):
                columns[key].append(rounded(float(values[place])))
    return columns


def last_values(columns: Columns, decimals: int | None = None) -> str:
    """The last value of each series, in words."""
    last = dict(zip(columns["series"], columns["mean"], strict=True))  # later steps overwrite
    places = decimals_for([value for value in last.values() if value is not None])
    shown = [
        f"{name} {number(value, decimals if decimals is not None else places)}"
        for name, value in list(last.items())[:12]
        if value is not None
    ]
    return f"Last values: {', '.join(shown)}." if shown else "No values."


def wants_log(columns: Sequence[Columns], key: str = "mean") -> bool:
    """Whether positive values span more than two orders of magnitude."""
    values = [value for table in columns for value in table[key] if value is not None]
    return bool(values) and min(values) > 0 and max(values) > 100 * min(values)


def value_domain(columns: Sequence[Columns]) -> tuple[float, float] | None:
    """One range for panels that are to be compared."""
    values = [value for table in columns for value in table["mean"] if value is not None]
    return (min(values), max(values)) if values and min(values) < max(values) else None
