"""The figures of the page: for each its panels, the table behind each panel, and what it says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.numerics import Interval
from taskmix.report import _charts as charts
from taskmix.report._charts import Bounds, metric_bounds, row_names
from taskmix.report._data import ReportData
from taskmix.report._scoreboard import Scoreboard, ScoreRow
from taskmix.report._words import counted, decimals_for, number, overall_name, with_interval

Columns = dict[str, list[Any]]

_CROWDED = 20  # rows; more stand closer


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
    legend: Literal["label", "task", "none"]
    specs: Mapping[str, charts.Spec] = field(default_factory=dict)

    @property
    def layout(self) -> Literal["wide", "pairs", "grid"]:
        """How many panels stand beside each other where there is room."""
        if len(self.panels) == 1:
            return "wide"
        return "pairs" if self.id == "scores" or len(self.panels) in (2, 4) else "grid"


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
    """Dots with intervals: scores, and how far they are from the best label's, paired by seed.

    Metrics share no axis, so each has panels of its own.
    """
    panels: list[Panel] = []
    specs: dict[str, charts.Spec] = {}
    lead = board.lead.best if board.lead is not None else ""
    many = any(cell and cell.interval.n > 1 for row in board.rows for cell in row.cells)
    paired = many and len(data.labels) > 1 and bool(lead)
    metrics = dict.fromkeys(row.task.metric for row in board.rows if row.task is not None)
    for place, metric in enumerate(metrics):
        of_metric = [row for row in board.rows if row.task and row.task.metric == metric]
        rows = [(row.task.name, row) for row in of_metric if row.task]
        if board.overall and board.measure == "mean" and len(metrics) == 1 and len(rows) > 1:
            rows.insert(0, (_fresh(overall_name(board), rows), board.overall))
        lower = any(row.task and not row.task.higher_is_better for row in of_metric)
        measure = f"{' / '.join(sorted({row.split for row in of_metric}))} {metric}"
        count = len(data.labels)
        height = max(16, 5 * count) if len(rows) > _CROWDED else max(24, 11 * count + 6)
        for kind in ("scores", "differences") if paired else ("scores",):
            name = f"{kind}-{place}"
            bounds = metric_bounds(metric)
            bounds = bounds if kind == "scores" else bounds.of_differences
            title = measure if kind == "scores" else f"Difference to {lead}"
            if kind == "scores":
                x_title = f"{measure} (lower is better)" if lower else measure
            else:
                x_title = f"{'lower' if lower else 'higher'} {measure} by"
            shown = row_names([row for row, _ in rows])
            if any("\n" in words for words in shown.values()):
                height = max(height, charts.NAMED_ROW)
            specs[name] = charts.dots(
                rows=list(shown.values()),
                labels=data.labels,
                x_title=x_title,
                row_height=height,
                zero_line=kind == "differences",
            )
            described = (
                f"{title}: {counted(len(rows), 'row')}, for each label a dot with its interval. "
                "The table above has the scores."
            )
            columns = _dot_columns(
                data.labels, [(key, _intervals(row, kind)) for key, row in rows], bounds
            )
            columns["row"] = [shown[name] for name in columns["name"]]
            panels.append(Panel(f"chart-{name}", title, name, columns, described))
    if sum(len(panel.columns["mean"]) for panel in panels) < 2:
        return None  # one dot says no more than the table
    caption = (
        "Dots are means over seeds, bars their 95 % intervals."
        if many
        else "One seed: no intervals."
    )
    if paired:
        caption += (
            f" Differences to {lead} are taken seed by seed: right of zero is better, and a bar "
            "clear of zero is more than chance."
        )
    return Figure("scores", caption, tuple(panels), "label", specs)


def _intervals(row: ScoreRow, kind: str) -> tuple[Interval | None, ...]:
    if kind == "differences":
        return row.differences
    return tuple(cell.interval if cell is not None else None for cell in row.cells)


def _fresh(name: str, rows: Sequence[tuple[str, Any]]) -> str:
    """A row's name that no task has."""
    while any(name == taken for taken, _ in rows):
        name += " "
    return name


def _dot_columns(
    labels: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Interval | None]]],
    bounds: Bounds,
) -> Columns:
    columns: Columns = {
        key: [] for key in ("name", "series", "mean", "low", "high", "shown", "seeds")
    }
    decimals = decimals_for(interval.mean for _, row in rows for interval in row if interval)
    for name, row in rows:
        for label, interval in zip(labels, row, strict=True):
            if interval is None:
                continue
            columns["name"].append(name)
            columns["series"].append(label)
            ends = (interval.low, interval.high) if interval.n > 1 else (interval.mean,) * 2
            for key, value in zip(("mean", "low", "high"), (interval.mean, *ends), strict=True):
                columns[key].append(rounded(bounds.held(value)))
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
