"""Scores of candidates from records, on one scale: higher is better, whatever the metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from taskmix.engine import Executed, Run
from taskmix.plans import Plan
from taskmix.tasks import Task, TaskSet, find_metric

SMALLEST_DEVIATION = 1e-12  # of targets that are all alike, by which nothing can be divided


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What came of a candidate under one seed."""

    candidate: Plan
    seed: int
    runs: tuple[Run, ...]
    dev: Mapping[str, float]  # the metric of each target, as it is
    test: Mapping[str, float]  # kept for the end; nothing is chosen by it
    batches: float  # until each model's best evaluation, over its models
    folders: tuple[str, ...] = ()  # the names under which the study has the runs
    loss: Mapping[str, float] = field(default_factory=dict)  # of each target, on dev
    seconds: float = float("nan")  # of all steps, on the device that took them


def entry_of(
    candidate: Plan, seed: int, runs: Sequence[Run], results: Sequence[Executed]
) -> Entry | None:
    """The scores that the candidate's models were made for; None where one of them failed."""
    found: dict[str, dict[str, float]] = {"dev": {}, "test": {}}
    loss: dict[str, float] = {}
    batches, folders = 0.0, []
    for part, run, result in zip(candidate.models, runs, results, strict=True):
        summary = result.summary
        if result.outcome not in ("finished", "already finished") or summary is None:
            return None
        folders.append(summary.name)
        batches += run.cost_of(summary.best_step or run.steps)
        for score in summary.scores:
            if score.task not in part.scored or score.split not in found:
                continue
            if score.metric != "loss":
                found[score.split][score.task] = score.value
            elif score.split == "dev":
                loss[score.task] = score.value
    return Entry(
        candidate=candidate,
        seed=seed,
        runs=tuple(runs),
        dev=found["dev"],
        test=found["test"],
        batches=batches,
        folders=tuple(folders),
        loss=loss,
    )


def comparable(task: Task, value: float) -> float:
    """A score of the task where higher is better and the unit of a regression does not count."""
    if task.metric == "rmse":
        targets = np.asarray(task.splits["train"].targets, dtype=np.float64)
        value /= max(float(np.nanstd(targets)), SMALLEST_DEVIATION)
    return value if find_metric(task.metric).higher_is_better else -value


def mean_comparable(tasks: TaskSet, scores: Mapping[str, float], names: Sequence[str]) -> float:
    """One number for a model: the mean over some tasks; those without a score do not count.

    >>> from taskmix.tasks import digits_tasks
    >>> mean_comparable(digits_tasks(), {"parity": 0.75, "half": 0.5}, ["parity", "half", "prime"])
    0.625
    """
    values = [comparable(tasks[name], scores[name]) for name in names if name in scores]
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def judged_targets(targets: tuple[str, ...], unlearned: Sequence[str]) -> tuple[str, ...]:
    """The targets whose scores count; where nothing was learned of any, all of them."""
    return tuple(name for name in targets if name not in unlearned) or targets
