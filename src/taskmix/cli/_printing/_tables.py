"""Final scores of runs as one table: tasks down, kinds of run across, intervals over seeds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskmix.cli._printing._display import draw_table

if TYPE_CHECKING:
    from taskmix.numerics import Interval
    from taskmix.records import RunSummary


@dataclass(frozen=True)
class ScoreTable:
    """`cells[task, label]` is a score with its interval over seeds; `means[label]` is over tasks."""

    split: str
    metrics: dict[str, str]  # task to metric
    labels: tuple[str, ...]
    cells: dict[tuple[str, str], Interval]
    means: dict[str, Interval]

    def rows(self) -> list[dict[str, Any]]:
        """The table as plain rows."""
        found = [
            _row(task, label, self.split, self.metrics[task], interval)
            for (task, label), interval in self.cells.items()
        ]
        return found + [
            _row(None, label, self.split, "mean", interval)
            for label, interval in self.means.items()
        ]


def _row(
    task: str | None, label: str, split: str, metric: str, interval: Interval
) -> dict[str, Any]:
    return {
        "task": task,
        "label": label,
        "split": split,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "seeds": interval.n,
    }


def score_table(
    summaries: Iterable[RunSummary], split: str, tasks: Sequence[str] | None = None
) -> ScoreTable:
    """Gathers the final scores of a split; runs of one label and seed are one model's (or, for
    single-task training, one set of models') scores. The mean is over `tasks`, or all, where their
    metrics can be averaged."""
    from taskmix.numerics import mean_interval

    values: dict[tuple[str, str], dict[int, float]] = {}
    metrics: dict[str, str] = {}
    for summary in summaries:
        for score in summary.scores:
            if score.split == split and score.metric != "loss":
                metrics.setdefault(score.task, score.metric)
                values.setdefault((score.task, summary.label), {})[summary.seed] = score.value
    labels = tuple(dict.fromkeys(label for _, label in values))
    cells = {
        key: mean_interval([by_seed[seed] for seed in sorted(by_seed)])
        for key, by_seed in values.items()
    }
    means = {}
    averaged = {metric for task, metric in metrics.items() if tasks is None or task in tasks}
    for label in labels if _can_be_averaged(averaged) else ():
        columns = [
            by_seed
            for (task, other), by_seed in values.items()
            if other == label and (tasks is None or task in tasks)
        ]
        seeds = sorted(set.intersection(*(set(column) for column in columns))) if columns else []
        if seeds:
            means[label] = mean_interval(
                [sum(column[seed] for column in columns) / len(columns) for seed in seeds]
            )
    return ScoreTable(split, metrics, labels, cells, means)


def _can_be_averaged(metrics: Collection[str]) -> bool:
    """As on the page: one metric, or such as are all better when they are higher."""
    from taskmix.tasks import METRICS

    lower = {name for name, metric in METRICS.items() if not metric.higher_is_better}
    return len(metrics) == 1 or not any(lower & set(metric.split("+")) for metric in metrics)


def print_table(table: ScoreTable, sizes: dict[str, int], *, title: str) -> None:
    """Draws the table on standard output."""
    metrics = set(table.metrics.values())
    if len(metrics) == 1:  # said once, not in every row
        title = f"{title} ({metrics.pop()})"
    rows: list[list[str] | None] = []
    for task, metric in table.metrics.items():
        cells = [_cell(table.cells.get((task, label))) for label in table.labels]
        rows.append([task, f"{sizes.get(task, 0):,}", *([metric] if metrics else []), *cells])
    if table.means:
        means = [_cell(table.means.get(label)) for label in table.labels]
        rows += [None, ["mean", "", *([""] if metrics else []), *means]]
    columns = ["task", "rows", *(["metric"] if metrics else []), *table.labels]
    draw_table(columns, rows, title=title, left=("metric",), whole=True)


def _cell(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    if interval.n == 1:
        return f"{interval.mean:.4f}"
    return f"{interval.mean:.3f} ± {interval.half_width:.3f}"
