"""The scores that a plan promises, task by task, at the length for which it is made.

Runs at hand are shorter than the training that will be, or not many: the dev scores of the longest
runs of the chosen way are moved along the curves of its tasks, which share a power and draw their
slopes to their mean as the ways' own curves do (`_growth.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from taskmix.adviser._curves import best_so_far
from taskmix.adviser._expect import expect_score
from taskmix.adviser._growth import CurveGrowth, fit_growth
from taskmix.adviser._guess import positives_of
from taskmix.adviser._judging import MOST_EXTRAPOLATED, Entries
from taskmix.adviser._rows import row_deviation
from taskmix.adviser._scores import Entry, comparable
from taskmix.plans import Expected
from taskmix.records import Study
from taskmix.tasks import TaskSet, find_metric

REACHED = 0.5  # of what is missing to a perfect score: more than that no promise should rest on


def promised_scores(
    entries: Sequence[Entry],  # of the chosen way
    every: Entries,  # of all ways, by which seeds scatter
    tasks: TaskSet,
    names: Sequence[str],
    study: Study,
    *,
    long: Sequence[Entry] = (),  # of the chosen way, longer
    begin: int,  # batches of `entries`
    middle: int,  # of `long`
    end: int,  # of the training that will be
    noise: float,  # of a run's mean score over seeds
    level: float,
) -> tuple[Expected, ...]:
    """One for each task that is trained for."""
    # The longest curves have the least left to come.
    growth = _growth_of_tasks(long or entries, tasks, names, study)
    start = middle if long else begin
    end = min(end, round(MOST_EXTRAPOLATED * begin))
    found = []
    for name in names:
        task = tasks[name]
        dev, test = len(task.splits["dev"]), task.sizes.get("test")
        spread, degrees = _spread(every, name)
        if not math.isfinite(spread):  # one seed each: what the race takes for noise, of one task
            unit = abs(comparable(task, 1.0) - comparable(task, 0.0))
            spread = noise * math.sqrt(len(names)) / unit
        scores = [entry.dev[name] for entry in long or entries]
        gain, error = _gain(growth, tasks, name, start, end)
        gain = _within_reach(gain, task.metric, float(np.mean(scores)))
        interval = expect_score(
            scores,
            task.metric,
            dev_rows=dev,
            test_rows=test or dev,
            dev_positives=positives_of(task),
            test_positives=positives_of(task, "test") if test else positives_of(task),
            spread=spread,
            degrees=degrees,
            row_deviation=row_deviation(long or entries, name, study),
            gain=gain,
            gain_error=error,
            level=level,
        )
        found.append(
            Expected(
                task=name,
                metric=task.metric,
                value=interval.mean,
                low=interval.low,
                high=interval.high,
            )
        )
    return tuple(found)


def _growth_of_tasks(
    entries: Sequence[Entry], tasks: TaskSet, names: Sequence[str], study: Study
) -> CurveGrowth | None:
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    for entry in entries:
        points = best_so_far(entry, tasks, names, study)
        for name in names:
            own = [(n, comparable(tasks[name], s[name])) for n, _, s in points if name in s]
            curves.setdefault(name, []).append([(n, y) for n, y in own if math.isfinite(y)])
    return fit_growth(curves, 0.0)


def _gain(
    growth: CurveGrowth | None, tasks: TaskSet, name: str, begin: float, end: float
) -> tuple[float, float]:
    """In the unit of the metric, with its error."""
    if growth is None or end <= begin:
        return 0.0, 0.0
    unit = comparable(tasks[name], 1.0) - comparable(tasks[name], 0.0)
    error = math.hypot(growth.error_between(begin, end), growth.mean_error_between(begin, end))
    (gain,) = growth.gains([name], begin=begin, end=end)
    return float(gain) / unit, error / abs(unit)


def _within_reach(gain: float, metric: str, score: float) -> float:
    """A curve knows no end of a metric: of what is missing to it no more than a part is promised."""
    if not find_metric(metric).higher_is_better:
        return max(gain, -REACHED * score)
    return min(gain, REACHED * max(1.0 - score, 0.0))


def _spread(every: Entries, name: str) -> tuple[float, float]:
    """Of a task's score over seeds, from all ways together, and its degrees of freedom."""
    squares, degrees = 0.0, 0
    for some in every.values():
        scores = [entry.dev[name] for entry in some if name in entry.dev]
        if len(scores) > 1 and np.isfinite(scores).all():
            squares += float(np.var(scores, ddof=1)) * (len(scores) - 1)
            degrees += len(scores) - 1
    return (math.sqrt(squares / degrees), float(degrees)) if degrees else (math.nan, 1.0)
