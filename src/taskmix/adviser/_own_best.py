"""Whether tasks of a shared run should each be served by the parameters of their own best evaluation.

A task that is at its best half-way through a run can be served by those parameters, for no training
more. But the best of several evaluations on the same rows is better than it will be on others: a task's
highest score is no evidence. So the runs of one seed say when a task is at its best, and those of the
others what that was worth there. What is not better then is not proposed, and in the race such a way has
the scores of evaluations that other seeds chose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from taskmix.adviser._curves import dev_curve
from taskmix.adviser._scores import Entry, comparable
from taskmix.plans import Plan
from taskmix.records import Study
from taskmix.tasks import TaskSet

SHARED_RUN = "uniform"  # whose evaluations are read, and which is proposed
DevCurve = Sequence[tuple[float, Mapping[str, float]]]  # batches, and the scores of each task
STANDARD_ERRORS = (
    1.0  # of the gain over tasks, that it should be above 0 by: a run costs as any other
)


def own_best(
    entries: Mapping[str, Sequence[Entry]], tasks: TaskSet, usable: Sequence[str], study: Study
) -> Plan | None:
    """The uniform runs with each task at its own best; None where nothing says that it would gain."""
    some = entries.get(SHARED_RUN, ())
    if len(some) < 2 or len(usable) < 2:
        return None
    curves = [_curve(entry, tasks, usable, study) for entry in some]
    shortest = min(map(len, curves))
    if (
        shortest < 2
        or not np.isfinite(gains := held_out_gains([c[:shortest] for c in curves])).all()
    ):
        return None
    error = float(np.std(gains, ddof=1)) / np.sqrt(len(gains))
    if float(np.mean(gains)) <= STANDARD_ERRORS * error:
        return None
    plan = some[0].candidate
    parts = tuple(replace(part, keep="each") for part in plan.parts)
    words = f"{plan.words}, each served by its own best evaluation"
    return Plan(name="own best", words=words, parts=parts)


def held_out_gains(curves: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """[task], what it gains to be served by its own best evaluation and not by that of the mean.

    `curves` are [evaluation, task], one a seed. Of each seed the evaluations are chosen by the means of
    the others' curves.
    """
    found = []
    for place, curve in enumerate(curves):
        others = np.mean([c for other, c in enumerate(curves) if other != place], axis=0)
        together = int(others.mean(axis=1).argmax())
        own = others.argmax(axis=0)
        found.append(curve[own, np.arange(curve.shape[1])] - curve[together])
    return np.asarray(np.mean(found, axis=0), dtype=np.float64)


def with_held_out_scores(entries: Sequence[Entry], tasks: TaskSet, study: Study) -> list[Entry]:
    """The same way under several seeds, each task's dev score at the evaluation that others chose.

    Under one seed nobody else chooses: it has the scores at the best mean, as any other way.
    """
    curves = [
        {
            place: dev_curve(part, run, tasks, study)
            for place, (part, run) in enumerate(zip(e.candidate.models, e.runs, strict=True))
            if part.keep == "each"
        }
        for e in entries
    ]
    found = []
    for number, entry in enumerate(entries):
        dev = dict(entry.dev)
        for place, curve in curves[number].items():
            others = [each[place] for other, each in enumerate(curves) if other != number]
            dev |= _at_steps_of_others(curve, others or [curve], tasks, own=bool(others))
        found.append(replace(entry, dev=dev))
    return found


def _at_steps_of_others(
    curve: DevCurve, others: Sequence[DevCurve], tasks: TaskSet, *, own: bool
) -> dict[str, float]:
    """The scores of one run at the evaluations that are the best in others, task by task."""
    count = min(map(len, [curve, *others]))
    names = list(curve[0][1]) if curve else []
    levels = np.array(
        [
            [
                np.mean([comparable(tasks[n], each[at][1].get(n, np.nan)) for each in others])
                for n in names
            ]
            for at in range(count)
        ]
    ).reshape(count, len(names))
    if not np.isfinite(levels).all() or not levels.size:
        return {}
    together = int(levels.mean(axis=1).argmax())
    places = levels.argmax(axis=0) if own else np.full(len(names), together)
    return {n: curve[int(at)][1][n] for n, at in zip(names, places, strict=True)}


def _curve(
    entry: Entry, tasks: TaskSet, usable: Sequence[str], study: Study
) -> NDArray[np.float64]:
    """[evaluation, task], higher is better."""
    ((part, run),) = zip(entry.candidate.parts, entry.runs, strict=True)
    rows = [
        [comparable(tasks[name], scores.get(name, float("nan"))) for name in usable]
        for _, scores in dev_curve(part, run, tasks, study)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(usable))
