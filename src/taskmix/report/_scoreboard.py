"""Final scores side by side: each label on each task, all tasks together, and who is ahead.

Everything is paired by seed. Runs of one label and one seed stand together, so that a label whose
runs train one task each ("single") has a score for all tasks as soon as each of them has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from taskmix.numerics import Interval, mean_interval, paired_interval, student_quantile
from taskmix.report._data import ReportData, TaskRow

BySeed = Mapping[int, float]
Standing = Literal["best", "close", "worse"]

_MOST_SEEDS = 1000  # beyond this, the number of seeds that would tell is no advice


@dataclass(frozen=True)
class Cell:
    """One label's score: its mean over seeds, and how it stands in its row."""

    interval: Interval
    standing: Standing  # `worse`: below the best by more than chance; `close`: cannot tell


@dataclass(frozen=True)
class ScoreRow:
    """One task, or all of them together where `task` is None."""

    task: TaskRow | None
    split: str
    cells: tuple[Cell | None, ...]  # one a label
    # To the label in the lead, seed by seed, one a label; above zero is better than it.
    differences: tuple[Interval | None, ...]


@dataclass(frozen=True)
class Lead:
    """The best label and how far it is ahead of the next; a positive difference is a lead."""

    best: str
    score: Interval
    next: str | None = None
    difference: Interval | None = None  # None without a next label or without a common seed
    seeds_needed: int | None = (
        None  # that would tell a difference of this size, where now we cannot
    )

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the difference, seed by seed, lies above zero."""
        difference = self.difference
        return difference is not None and difference.mean > 0 and difference.excludes(0.0)


@dataclass(frozen=True)
class Scoreboard:
    rows: tuple[ScoreRow, ...]
    overall: ScoreRow | None
    measure: Literal["mean", "rank"]  # ranks where the metrics cannot be averaged
    higher_is_better: bool  # of `overall`
    compared: tuple[str, ...]  # the tasks `overall` is about
    lead: Lead | None
    notes: tuple[str, ...]


def scoreboard(data: ReportData) -> Scoreboard:
    """The table of final scores, and what it says."""
    notes: list[str] = []
    splits = _splits(data)
    scores = _by_seed(data, splits, notes)
    scored = [task for task in data.tasks if task.name in splits]
    judged = [
        task.name for task in scored if data.advice is None or task.name in data.advice.judged
    ]
    labels, compared = _comparable(data.labels, judged, scores)
    tasks = [data.task(name) for name in compared]
    measure: Literal["mean", "rank"] = "mean" if can_be_averaged(tasks) else "rank"
    higher = measure == "mean" and all(task.higher_is_better for task in tasks)
    totals = _totals(labels, tasks, scores, measure)
    _note_gaps(data, labels, compared, scores, totals, len(judged), notes)
    lead = _lead({label: total for label, total in totals.items() if total}, higher)
    ahead = data.labels.index(lead.best) if lead is not None else None
    rows = tuple(
        _row(
            task,
            splits[task.name],
            [scores[label].get(task.name, {}) for label in data.labels],
            ahead,
            higher_is_better=task.higher_is_better,
        )
        for task in scored
    )
    overall = None
    if lead is not None:
        by_label = [totals.get(label, {}) for label in data.labels]
        overall = _row(None, splits[compared[0]], by_label, ahead, higher_is_better=higher)
    return Scoreboard(rows, overall, measure, higher, tuple(compared), lead, tuple(notes))


def can_be_averaged(tasks: Sequence[TaskRow]) -> bool:
    """Shares and correlations may be averaged; errors in several units may not."""
    return all(task.higher_is_better for task in tasks) or len({t.metric for t in tasks}) == 1


def _splits(data: ReportData) -> dict[str, str]:
    """The split each task is judged by: test, or dev where there is no test score."""
    found: dict[str, str] = {}
    for score in data.scores:
        if math.isfinite(score.value) and found.get(score.task) != "test":
            found[score.task] = score.split
    return found


def _by_seed(
    data: ReportData, splits: Mapping[str, str], notes: list[str]
) -> dict[str, dict[str, dict[int, float]]]:
    """Of each label and task: the score of each seed. Runs that agree in all three are averaged."""
    values: dict[str, dict[str, dict[int, list[float]]]] = {label: {} for label in data.labels}
    lost = 0
    for score in data.scores:
        if splits.get(score.task, score.split) != score.split:
            continue
        if not math.isfinite(score.value):
            lost += 1
            continue
        task = values[score.label].setdefault(score.task, {})
        task.setdefault(score.seed, []).append(score.value)
    if lost:
        notes.append(f"{lost} final score{'s are' if lost > 1 else ' is'} not a number: left out.")
    return {
        label: {
            task: {seed: float(np.mean(found)) for seed, found in sorted(seeds.items())}
            for task, seeds in tasks.items()
        }
        for label, tasks in values.items()
    }


def _row(
    task: TaskRow | None,
    split: str,
    by_label: Sequence[BySeed],
    ahead: int | None,
    *,
    higher_is_better: bool,
) -> ScoreRow:
    sign = 1.0 if higher_is_better else -1.0
    differences = tuple(
        None if ahead is None or place == ahead else _paired(seeds, by_label[ahead], sign)
        for place, seeds in enumerate(by_label)
    )
    return ScoreRow(task, split, _cells(by_label, sign), differences)


def _cells(by_label: Sequence[BySeed], sign: float) -> tuple[Cell | None, ...]:
    intervals = [mean_interval(list(seeds.values())) if seeds else None for seeds in by_label]
    known = [place for place, interval in enumerate(intervals) if interval is not None]
    best = max(known, key=lambda place: sign * _mean(intervals[place]), default=None)
    cells: list[Cell | None] = []
    for place, interval in enumerate(intervals):
        if interval is None or best is None:
            cells.append(None)
        elif place == best:
            cells.append(Cell(interval, "best"))
        else:
            difference = _paired(by_label[best], by_label[place], sign)
            worse = difference is not None and difference.excludes(0.0) and difference.mean > 0
            cells.append(Cell(interval, "worse" if worse else "close"))
    return tuple(cells)


def _mean(interval: Interval | None) -> float:
    return interval.mean if interval is not None else -math.inf


def _paired(first: BySeed, second: BySeed, sign: float) -> Interval | None:
    common = [seed for seed in first if seed in second]
    if not common:
        return None
    return paired_interval(
        [sign * first[seed] for seed in common], [sign * second[seed] for seed in common]
    )


def _comparable(
    labels: Sequence[str], tasks: Sequence[str], scores: Mapping[str, Mapping[str, BySeed]]
) -> tuple[list[str], list[str]]:
    """The labels and tasks a fair mean is over: every label has a score on every task."""
    scored = [label for label in labels if scores[label]]
    full = [label for label in scored if all(task in scores[label] for task in tasks)]
    common = [task for task in tasks if all(task in scores[label] for label in scored)]
    if len(full) >= 2 or len(scored) == 1 or not common:
        return full, list(tasks)
    return scored, common


def _totals(
    labels: Sequence[str],
    tasks: Sequence[TaskRow],
    scores: Mapping[str, Mapping[str, BySeed]],
    measure: Literal["mean", "rank"],
) -> dict[str, BySeed]:
    """One number a label and seed over all tasks, for the seeds that have all tasks."""
    seeds: dict[str, list[int]] = {
        label: [
            seed
            for seed in sorted({seed for task in tasks for seed in scores[label][task.name]})
            if all(seed in scores[label][task.name] for task in tasks)
        ]
        for label in labels
    }
    if measure == "mean":
        return {
            label: {
                seed: float(np.mean([scores[label][task.name][seed] for task in tasks]))
                for seed in seeds[label]
            }
            for label in labels
        }
    from scipy.stats import rankdata

    common = [seed for seed in seeds[labels[0]] if all(seed in seeds[label] for label in labels)]
    totals: dict[str, dict[int, float]] = {label: {} for label in labels}
    for seed in common:
        oriented = np.array(
            [
                [scores[label][task.name][seed] * (-1 if task.higher_is_better else 1)]
                for label in labels
                for task in tasks
            ]
        ).reshape(len(labels), len(tasks))
        ranks = rankdata(oriented, axis=0).mean(axis=1)  # 1 is best
        for label, rank in zip(labels, ranks, strict=True):
            totals[label][seed] = float(rank)
    return dict(totals)


def _lead(totals: Mapping[str, BySeed], higher_is_better: bool) -> Lead | None:
    sign = 1.0 if higher_is_better else -1.0
    means = {label: mean_interval(list(seeds.values())) for label, seeds in totals.items()}
    order = sorted(means, key=lambda label: -sign * means[label].mean)
    if not order:
        return None
    best = order[0]
    if len(order) == 1:
        return Lead(best, means[best])
    difference = _paired(totals[best], totals[order[1]], sign)
    needed = seeds_that_tell(difference) if difference is not None else None
    return Lead(best, means[best], order[1], difference, needed)


def seeds_that_tell(difference: Interval) -> int | None:
    """How many seeds would exclude zero, if mean and spread stayed; None where that is no advice."""
    if difference.n < 2 or difference.excludes(0.0) or difference.mean <= 0:
        return None
    reach = student_quantile(difference.level, difference.n - 1)
    deviation = difference.half_width * math.sqrt(difference.n) / reach
    for seeds in range(difference.n + 1, _MOST_SEEDS + 1):
        reach = student_quantile(difference.level, seeds - 1)
        if reach * deviation / math.sqrt(seeds) < abs(difference.mean):
            return seeds
    return None


def _note_gaps(
    data: ReportData,
    labels: Sequence[str],
    compared: Sequence[str],
    scores: Mapping[str, Mapping[str, BySeed]],
    totals: Mapping[str, BySeed],
    judged_tasks: int,
    notes: list[str],
) -> None:
    if len(compared) < judged_tasks:
        notes.append(
            f"All labels have a score on {len(compared)} of {judged_tasks} tasks: "
            "what is said about all tasks together is about these."
        )
    for label in data.labels:
        if not scores[label]:
            notes.append(f"No run of {label} has a final score yet.")
        elif label not in labels:
            notes.append(f"{label} has no score on some tasks: it has no mean over all of them.")
        else:
            seeds = {seed for name in compared for seed in scores[label][name]}
            if gone := sorted(seeds - set(totals[label])):
                seeds_word = f"seed{'s' if len(gone) > 1 else ''} {', '.join(map(str, gone))}"
                notes.append(
                    f"{label} lacks tasks under {seeds_word}: left out of its mean over tasks."
                )
