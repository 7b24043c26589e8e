r"""How far a difference of two ways may come from the choice of dev rows.

The record of a run has a credit for every dev row, whose mean is the score of a task. Ways are judged on
the same rows, so R, the covariance of their mean scores over other such rows, is that of their credits:

    R_cd = Σ_g Σ_i q_ci q_di,    q_ci = Σ_t (u_cti − ū_ct) / √(n_t (n_t − 1)) / |T|

over groups g of tasks that share their rows i, with u_cti the mean over seeds of the credit of task t,
of which n_t rows have a target. Where all have one, R is the covariance of the mean credits over n_g.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from taskmix.adviser._scores import Entry, unit_of
from taskmix.records import Study
from taskmix.tasks import TaskSet

Array = NDArray[np.float64]


def row_noise(
    entries: Mapping[str, Sequence[Entry]], tasks: TaskSet, judged: Sequence[str], study: Study
) -> dict[str, Array] | None:
    """R: for each way its covariance with all, in their order; None where a record has no credits."""
    ways = list(entries)
    known = {way: _credits(entries[way], tasks, judged, study) for way in ways}
    if not ways or any(set(found) != set(judged) for found in known.values()):
        return None
    total = np.zeros((len(ways), len(ways)))
    for names in _sharing(tasks, judged):
        lengths = {len(known[way][name]) for way in ways for name in names}
        if len(lengths) != 1:  # the rows of one task at a time
            return None
        parts = sum(_parts(np.array([known[way][name] for way in ways])) for name in names)
        total += parts @ np.transpose(parts) / len(judged) ** 2
    return {way: total[place] for place, way in enumerate(ways)}


def _parts(values: Array) -> Array:
    """Of each row [way, row] in the error of a mean over the rows that have a target."""
    known = np.isfinite(values).all(axis=0)
    count = int(known.sum())
    found = np.zeros_like(values)
    if count > 1:
        own = values[:, known]
        found[:, known] = (own - own.mean(axis=1, keepdims=True)) / np.sqrt(count * (count - 1))
    return found


def _sharing(tasks: TaskSet, judged: Sequence[str]) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for name in judged:
        groups.setdefault(id(tasks[name].splits["dev"].inputs), []).append(name)
    return list(groups.values())


def _credits(
    entries: Sequence[Entry], tasks: TaskSet, judged: Sequence[str], study: Study
) -> dict[str, Array]:
    """The mean over seeds of each task's credits, on the scale of the race."""
    found: dict[str, list[Array]] = {}
    for entry in entries:
        for part, run in zip(entry.candidate.models, entry.runs, strict=True):
            kept = study.run(run.specification()).credits()
            for name in part.scored:
                if name in kept and name in judged:
                    unit = unit_of(tasks[name])
                    found.setdefault(name, []).append(unit * kept[name].astype(np.float64))
    return {
        name: np.mean(some, axis=0)
        for name, some in found.items()
        if len(some) == len(entries) and len({len(each) for each in some}) == 1
    }


def row_deviation(entries: Sequence[Entry], name: str, study: Study) -> float | None:
    """Of the credits of a task's dev rows; None where the records have none."""
    found = []
    for entry in entries:
        for part, run in zip(entry.candidate.models, entry.runs, strict=True):
            if name in part.scored:
                kept = study.run(run.specification()).credits()
                if name in kept:
                    found.append(float(np.nanstd(kept[name].astype(np.float64), ddof=1)))
    return float(np.mean(found)) if found and np.isfinite(found).all() else None
