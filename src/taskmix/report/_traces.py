"""Figures of what happened on the way: scores, budget, losses and weights over steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from taskmix.report import _charts as charts
from taskmix.report._data import (
    Binned,
    ReportData,
    Trace,
    bin_edges,
    bin_of,
    binned_mean,
    carry_forward,
    divided,
    mean_over,
)
from taskmix.report._figures import (
    Columns,
    Figure,
    Palette,
    Panel,
    last_values,
    series_columns,
    value_domain,
    wants_log,
)
from taskmix.report._scoreboard import can_be_averaged
from taskmix.report._words import counted, listed

Numbers = NDArray[np.float64]
Curve = tuple[Numbers, Numbers]  # steps, values

_CURVE_POINTS = 2  # for each bin of the steps: evaluations are fewer and less noisy than losses


def curve_figure(data: ReportData) -> Figure | None:
    """Dev scores over steps, a panel a task, a line a label."""
    panels = []
    for place, task in enumerate(data.tasks):
        columns = _curve_columns(data, [task.name])
        if columns["step"]:
            panels.append(_curve_panel(f"chart-curve-{place}", task.name, task.metric, columns))
    if not panels:
        return None
    with_curves = [data.task(panel.title) for panel in panels]
    if len(panels) > 1 and can_be_averaged(with_curves):
        columns = _curve_columns(data, [task.name for task in with_curves])
        if columns["step"]:
            title = f"Mean of {len(panels)} tasks"
            panels.insert(0, _curve_panel("chart-curve-mean", title, "", columns))
    last = max(max(panel.columns["step"]) for panel in panels)
    spec = charts.lines(
        colours=charts.label_colours(data.labels), last_step=last, height=150, band=True
    )
    caption = "Score on dev after each evaluation."
    if _several(data):
        caption += " Lines are means over seeds, shades reach from the lowest seed to the highest."
    if any(len(trace.tasks) == 1 for trace in data.traces) and len(data.tasks) > 1:
        caption += " A run on one task alone spends all its steps on it."
    return Figure("curves", caption, tuple(panels), "label", {"curves": spec})


def _curve_panel(panel_id: str, title: str, metric: str, columns: Columns) -> Panel:
    described = f"Dev {metric or 'score'} of {title} over steps. {last_values(columns)}"
    return Panel(panel_id, title, "curves", columns, described, note=metric)


def _curve_columns(data: ReportData, tasks: Sequence[str]) -> Columns:
    """The mean over `tasks` of their dev scores: a series a label, its range over seeds."""
    series = []
    for label in data.labels:
        curves = _curves_of(data, label, tasks)
        if curves is not None:
            steps, values = curves
            series.append((label, steps, mean_over(values)))
    return series_columns(series, ("mean", "low", "high"))


def _curves_of(data: ReportData, label: str, tasks: Sequence[str]) -> Curve | None:
    """Steps, and values [replicate, step]: seeds stand for replicates where tasks are averaged."""
    found: dict[int, dict[str, list[Curve]]] = {}
    if label not in data.edges:
        return None
    edges = bin_edges(int(data.edges[label][-1]), _CURVE_POINTS * len(data.bin_steps(label)))
    for trace in data.traces:
        for task in tasks if trace.label == label else ():
            if task in trace.scores and len(trace.scores[task][0]):
                steps, values = trace.scores[task]
                curve = _few_points(steps.astype(np.float64), values, edges)
                found.setdefault(trace.seed, {}).setdefault(task, []).append(curve)
    whole = {seed: curves for seed, curves in found.items() if len(curves) == len(tasks)}
    if not whole:
        return None
    every = [curve for curves in whole.values() for many in curves.values() for curve in many]
    grid = np.unique(np.concatenate([steps for steps, _ in every]))
    rows = []
    for curves in whole.values():
        of_tasks = [
            mean_over(np.array([_on_grid(curve, grid) for curve in many]))[0]
            for many in curves.values()
        ]
        rows.append(np.mean(of_tasks, axis=0))  # NaN until every task has been evaluated
    return grid, np.array(rows)


def _few_points(steps: Numbers, values: Numbers, edges: Numbers) -> Curve:
    count = len(edges) - 1
    if len(steps) <= count:
        return steps, values
    bins = bin_of(steps.astype(np.int64), edges)
    means = binned_mean(values, np.zeros(len(bins), dtype=np.int64), bins, (1, count))[0]
    known = np.isfinite(means)
    return edges[1:][known], means[known]


def _on_grid(curve: Curve, grid: Numbers) -> Numbers:
    """The curve on more steps: a run that has stopped keeps its last score."""
    values = np.full(len(grid), np.nan)
    values[np.searchsorted(grid, curve[0])] = curve[1]
    return carry_forward(values)


def share_figure(data: ReportData, colours: Palette) -> Figure | None:
    """Which part of the budget each task got, a panel a label."""
    names = [task.name for task in data.tasks]
    panels = []
    for place, label in enumerate(data.labels):
        traces = [t for t in data.traces if t.label == label and len(t.tasks) > 1]
        if not traces:
            continue  # one task alone gets everything: nothing to show
        share = mean_over(np.array([_shares(data, trace) for trace in traces]))[0]
        rows = [(name, share[names.index(name)]) for name in colours.coloured]
        if colours.others:
            others = share[[names.index(name) for name in colours.others]].sum(axis=0)
            rows.append((colours.other_name, others))
        series = [
            (name, data.bin_steps(label), (values, np.full(len(values), float(order))))
            for order, (name, values) in enumerate(rows)
        ]
        columns = series_columns(series, ("mean", "order"))
        if columns["step"]:
            words = f"Share of the budget each task got under {label}, over steps. "
            panels.append(
                Panel(
                    f"chart-share-{place}", label, "shares", columns, words + last_values(columns)
                )
            )
    if not panels:
        return None
    shown = [*colours.coloured, *([colours.other_name] if colours.others else [])]
    spec = charts.stacked_shares(
        colours=charts.task_colours(shown, colours.coloured),
        last_step=data.last_step,
        height=190,
    )
    caption = (
        "The probability with which each task was drawn or, where all tasks are trained at once, "
        f"its part of the examples{'; mean over seeds' if _several(data) else ''}.{_thinned(data)}"
    )
    alone = [label for label in data.labels if label not in {panel.title for panel in panels}]
    if alone:
        caption += f" Runs on one task alone ({listed(alone)}) have nothing to share."
    return Figure("shares", caption, tuple(panels), "task", {"shares": spec})


def _shares(data: ReportData, trace: Trace) -> Binned:
    """[task, bin], adding up to one in each bin the run has reached."""
    known = np.isfinite(trace.probabilities).all(axis=0)
    spent = divided(trace.examples, trace.examples.sum(axis=0))
    share = np.where(known, trace.probabilities, spent)
    names = [task.name for task in data.tasks]
    whole = np.zeros((len(names), share.shape[1]))
    whole[[names.index(task) for task in trace.tasks]] = share
    whole[:, np.isnan(share).any(axis=0)] = np.nan
    return whole


def loss_figure(data: ReportData, colours: Palette) -> Figure | None:
    """Training losses, a panel a label, a line a task."""
    return _by_label(data, colours, "losses", "training loss")


def weight_figure(data: ReportData, colours: Palette) -> Figure | None:
    """Weights of the losses, for the labels that weigh."""
    return _by_label(data, colours, "weights", "weight")


def _by_label(data: ReportData, colours: Palette, what: str, title: str) -> Figure | None:
    order = [*colours.others, *colours.coloured]  # colours are drawn over grey
    panels, tables = [], []
    for place, label in enumerate(data.labels):
        values = {seed: _stacked(data, label, seed, what) for seed in _seeds(data, label)}
        if not values:
            continue
        mean = mean_over(np.array(list(values.values())))[0]
        known = mean[np.isfinite(mean)]
        if not len(known) or (what == "weights" and np.allclose(known, 1.0)):
            continue  # weights that are all one are no weights
        names = [task.name for task in data.tasks]
        series = [(name, data.bin_steps(label), (mean[names.index(name)],)) for name in order]
        columns = series_columns(series, ("mean",))
        tables.append(columns)
        described = f"{title.capitalize()} of each task under {label}, over steps. "
        panels.append(
            Panel(f"chart-{what}-{place}", label, what, columns, described + last_values(columns))
        )
    if not panels:
        return None
    log = wants_log(tables)
    spec = charts.lines(
        colours=charts.task_colours(order, colours.coloured),
        last_step=data.last_step,
        height=190,
        log=log,
        domain=value_domain(tables),
        thin=True,
    )
    caption = f"Mean {title} over seeds" if _several(data) else title.capitalize()
    if len(panels) > 1:
        caption += "; all panels have one log scale" if log else "; all panels have one scale"
    elif log:
        caption += ", on a log scale"
    caption += f".{_thinned(data)}"
    if colours.others:
        caption += f" The {len(colours.coloured)} largest tasks have colours, the others are grey."
    return Figure(what, caption, tuple(panels), "task", {what: spec})


def variance_figure(data: ReportData) -> Figure | None:
    """How unequal the tasks' losses are, a line a label."""
    series = []
    for label in data.labels:
        rows = []
        for seed in _seeds(data, label):
            losses = _stacked(data, label, seed, "losses")
            trained = losses[np.isfinite(losses).any(axis=1)]
            if len(trained) < 2:
                continue
            held = carry_forward(trained)
            held[:, _after_end(trained)] = np.nan
            rows.append(held.var(axis=0))  # NaN until every task has been seen
        if rows:
            series.append((label, data.bin_steps(label), mean_over(np.array(rows))))
    columns = series_columns(series, ("mean", "low", "high"))
    if not columns["step"]:
        return None
    spec = charts.lines(
        colours=charts.label_colours(data.labels),
        last_step=data.last_step,
        height=240,
        y_title="variance",
        band=True,
        log=wants_log([columns], "low"),
    )
    described = f"Variance of the training losses between tasks, over steps. {last_values(columns)}"
    panel = Panel("chart-variance", "All tasks", "variance", columns, described)
    caption = (
        "Variance between the tasks' mean training losses; a task not seen for a while counts with "
        f"its last loss.{_thinned(data)}"
    )
    if _several(data):
        caption += " Shades reach from the lowest seed to the highest."
    return Figure("variance", caption, (panel,), "label", {"variance": spec})


def _after_end(values: Binned) -> NDArray[np.bool_]:
    """The bins after the last one in which anything was seen."""
    seen = np.flatnonzero(np.isfinite(values).any(axis=0))
    return np.asarray(np.arange(values.shape[1]) > seen[-1])


def _stacked(data: ReportData, label: str, seed: int, what: str) -> Binned:
    """All runs of a label and a seed as one: [task, bin]; where several have a task, their mean."""
    names = [task.name for task in data.tasks]
    layers = []
    for trace in data.traces:
        if trace.label == label and trace.seed == seed:
            layer = np.full((len(names), len(data.bin_steps(label))), np.nan)
            rows = [names.index(task) for task in trace.tasks]
            layer[rows] = trace.losses if what == "losses" else trace.weights
            layers.append(layer)
    return mean_over(np.array(layers))[0]


def _seeds(data: ReportData, label: str) -> list[int]:
    return sorted({trace.seed for trace in data.traces if trace.label == label})


def _several(data: ReportData) -> bool:
    return len({trace.seed for trace in data.traces}) > 1


def _thinned(data: ReportData) -> str:
    if data.widest_bin <= 1:
        return ""
    return f" Each point is a mean over up to {counted(data.widest_bin, 'step')}."
