"""Scores of candidates from records, on one scale: higher is better, whatever the metric.

A run keeps the parameters of its best dev evaluation. Counting a candidate by that score favours those
that train many models: each picks its own best moment on the rows that then judge it. So a seed of a
candidate is scored at one evaluation, the same for all its models, which its other seeds chose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from taskmix.engine import Executed, Run
from taskmix.plans import Part, Plan
from taskmix.records import Study
from taskmix.tasks import Task, TaskSet, find_metric

SMALLEST_DEVIATION = 1e-12  # of targets that are all alike, by which nothing can be divided

ByTask = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What came of a candidate under one seed."""

    candidate: Plan
    seed: int
    runs: tuple[Run, ...]
    dev: ByTask  # the metric of each target, as it is
    test: ByTask  # kept for the end; nothing is chosen by it
    batches: float  # until each model's best evaluation, over its models
    folders: tuple[str, ...] = ()  # the names under which the study has the runs
    curve: tuple[ByTask, ...] = ()  # of dev, evaluation by evaluation
    loss_fell: ByTask = field(default_factory=dict)  # of each target: the last fall of its dev loss
    seconds: float = float("nan")  # of all steps, on the device that took them


Entries = Mapping[str, Sequence[Entry]]  # of each candidate, by seed


def entry_of(
    candidate: Plan, seed: int, runs: Sequence[Run], results: Sequence[Executed], study: Study
) -> Entry | None:
    """The scores that the candidate's models were made for; None where one of them failed."""
    found: dict[str, dict[str, float]] = {"dev": {}, "test": {}}
    batches, folders, curves, falls = 0.0, [], [], dict[str, float]()
    for part, run, result in zip(candidate.models, runs, results, strict=True):
        summary = result.summary
        if result.outcome not in ("finished", "already finished") or summary is None:
            return None
        folders.append(summary.name)
        batches += run.cost_of(summary.best_step or run.steps)
        for score in summary.scores:
            named = score.task in part.scored and score.split in found
            if named and score.metric != "loss":
                found[score.split][score.task] = score.value
        curve, own = _curve(part, run, study)
        curves.append(curve)
        falls |= own
    together = tuple(
        {name: value for scores in some for name, value in scores.items()}
        for some in zip(*curves, strict=False)  # the shortest has an evaluation less, by rounding
    )
    return Entry(
        candidate=candidate,
        seed=seed,
        runs=tuple(runs),
        dev=found["dev"],
        test=found["test"],
        batches=batches,
        folders=tuple(folders),
        curve=together,
        loss_fell=falls,
    )


def _curve(part: Part, run: Run, study: Study) -> tuple[list[ByTask], dict[str, float]]:
    """The dev scores at each evaluation of a run, and by which share each loss fell at last."""
    steps: dict[int, dict[str, float]] = {}
    losses: dict[str, list[tuple[int, float]]] = {}
    for row in run.folder(study).scores().to_pylist():
        if row["split"] != "dev" or row["task"] not in part.scored or row["value"] is None:
            continue
        if row["metric"] == "loss":
            losses.setdefault(row["task"], []).append((row["step"], row["value"]))
        else:
            steps.setdefault(row["step"], {})[row["task"]] = row["value"]
    falls = {
        name: _last_fall([value for _, value in sorted(rows)]) for name, rows in losses.items()
    }
    return [scores for _, scores in sorted(steps.items())], falls


def _last_fall(losses: Sequence[float]) -> float:
    """By which share the loss fell over the last quarter of the evaluations; NaN where none is known."""
    if len(losses) < 2:
        return float("nan")
    quarter = max(len(losses) // 4, 1)
    before, after = np.mean(losses[-2 * quarter : -quarter]), np.mean(losses[-quarter:])
    return float((before - after) / abs(before)) if before else 0.0


def fair_entries(entries: Entries, tasks: TaskSet, judged: Sequence[str]) -> dict[str, list[Entry]]:
    """Every seed scored at the evaluation that is best on average over the others of its candidate.

    Of one seed alone it is the one that is best over all other candidates. A seed without a mean score
    ends its candidate's: comparisons are paired by seed.
    """
    curves = {
        way: [
            np.array([mean_comparable(tasks, scores, judged) for scores in entry.curve])
            for entry in some
        ]
        for way, some in entries.items()
    }
    found: dict[str, list[Entry]] = {}
    for way, some in entries.items():
        for place, entry in enumerate(some):
            others = [curve for each, curve in enumerate(curves[way]) if each != place]
            if not others:
                others = [each for name, more in curves.items() if name != way for each in more]
            where = best_evaluation(others)
            if entry.curve:
                scores = entry.curve[min(where, len(entry.curve) - 1)]
                entry = replace(entry, dev=scores)
            if not np.isfinite(mean_comparable(tasks, entry.dev, judged)):
                break
            found.setdefault(way, []).append(entry)
    return found


def best_evaluation(curves: Sequence[np.ndarray]) -> int:
    """The place of the highest point of the mean curve; the last of all where there is none."""
    length = min((len(curve) for curve in curves), default=0)
    if not length:
        return -1
    mean = np.mean([curve[:length] for curve in curves], axis=0)
    return -1 if not np.isfinite(mean).any() else int(np.nanargmax(mean))


def comparable(task: Task, value: float) -> float:
    """A score of the task where higher is better and the unit of a regression does not count."""
    if task.metric == "rmse":
        targets = np.asarray(task.splits["train"].targets, dtype=np.float64)
        value /= max(float(np.nanstd(targets)), SMALLEST_DEVIATION)
    return value if find_metric(task.metric).higher_is_better else -value


def unit_of(task: Task) -> float:
    """How much a score counts on that scale."""
    return comparable(task, 1.0) - comparable(task, 0.0)


def mean_comparable(tasks: TaskSet, scores: ByTask, names: Sequence[str]) -> float:
    """One number for a model: the mean over some tasks; those without a score do not count.

    >>> from taskmix.tasks import digits_tasks
    >>> mean_comparable(digits_tasks(), {"parity": 0.75, "half": 0.5}, ["parity", "half", "prime"])
    0.625
    """
    values = [comparable(tasks[name], scores[name]) for name in names if name in scores]
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def judged_targets(targets: tuple[str, ...], left_out: Sequence[str]) -> tuple[str, ...]:
    """The targets whose scores count; where all should be left out, all of them."""
    return tuple(name for name in targets if name not in left_out) or targets
