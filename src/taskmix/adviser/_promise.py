"""The scores that a plan promises, and those of the model that is delivered, task by task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from taskmix.adviser._expect import expect_score
from taskmix.adviser._guess import positives_of
from taskmix.adviser._members import credits_of_outputs, score_of
from taskmix.adviser._rows import row_deviation
from taskmix.adviser._scores import Entries, Entry, unit_of
from taskmix.numerics import Interval
from taskmix.plans import Expected
from taskmix.records import Study
from taskmix.tasks import Task, TaskSet


def promised_scores(
    entries: Sequence[Entry],  # of the chosen candidate
    every: Entries,  # of all, by which seeds scatter
    tasks: TaskSet,
    names: Sequence[str],
    study: Study,
    *,
    noise: float,  # of a run's mean score over seeds
    level: float,
) -> tuple[Expected, ...]:
    """Of one more run of a candidate: one for each task that it is trained for."""
    found = []
    for name in names:
        task = tasks[name]
        spread, degrees = _spread(every, name)
        if not math.isfinite(spread):  # one seed each: what the race takes for noise, of one task
            spread = noise * math.sqrt(len(names)) / abs(unit_of(task))
        scores = [entry.dev[name] for entry in entries if name in entry.dev]
        if scores and np.isfinite(scores).all():
            deviation = row_deviation(entries, name, study)
            interval = _expect(task, scores, spread, degrees, deviation, level)
            found.append(_expected(task, interval))
    return tuple(found)


def promised_of_model(
    dev: Mapping[str, np.ndarray],  # what a model says of dev rows that it was not fitted to
    tasks: TaskSet,
    names: Sequence[str],
    *,
    level: float,
) -> tuple[Expected, ...]:
    """Of one model as it is."""
    found = []
    for name in names:
        if name in dev and math.isfinite(score := score_of(tasks[name], "dev", dev[name])):
            of_rows = credits_of_outputs(tasks[name], "dev", dev[name])
            known = of_rows[np.isfinite(of_rows)]
            deviation = float(known.std(ddof=1)) if len(known) > 1 else None
            interval = _expect(tasks[name], [score], 0.0, 1.0, deviation, level)
            found.append(_expected(tasks[name], interval))
    return tuple(found)


def _expect(
    task: Task,
    scores: Sequence[float],
    spread: float,
    degrees: float,
    deviation: float | None,
    level: float,
) -> Interval:
    dev, test = len(task.splits["dev"]), task.sizes.get("test")
    return expect_score(
        scores,
        task.metric,
        dev_rows=dev,
        test_rows=test or dev,
        dev_positives=positives_of(task),
        test_positives=positives_of(task, "test") if test else positives_of(task),
        spread=spread,
        degrees=degrees,
        row_deviation=deviation,
        level=level,
    )


def _expected(task: Task, interval: Interval) -> Expected:
    return Expected(
        task=task.name,
        metric=task.metric,
        value=interval.mean,
        low=interval.low,
        high=interval.high,
    )


def _spread(every: Entries, name: str) -> tuple[float, float]:
    """Of a task's score over seeds, from all candidates together, and its degrees of freedom."""
    squares, degrees = 0.0, 0
    for some in every.values():
        scores = [entry.dev[name] for entry in some if name in entry.dev]
        if len(scores) > 1 and np.isfinite(scores).all():
            squares += float(np.var(scores, ddof=1)) * (len(scores) - 1)
            degrees += len(scores) - 1
    return (math.sqrt(squares / degrees), float(degrees)) if degrees else (math.nan, 1.0)
