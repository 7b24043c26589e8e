"""Whether tasks of a shared run should each be served by the parameters of their own best evaluation.

A task that is at its best half-way through a run can be served by those parameters, for no training
more. But the best of several evaluations on the same rows is better than it will be on others: a task's
highest score is no evidence. So the runs of one seed say when a task is at its best, and those of the
others what that was worth there. What is not better then is not proposed.
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
