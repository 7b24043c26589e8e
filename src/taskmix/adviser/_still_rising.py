"""Whether a task was still getting better when its runs ended, by its dev loss.

The loss is a better witness than the metric: entity F1 stays at 0 while the loss of the tags falls. A
run's last quarter of evaluations (the last one, of fewer than eight) is compared with as many before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from taskmix.adviser._scores import Entry
from taskmix.records import Study

FEWEST_EVALUATIONS = 2  # of a run, so that there is a before and an after
LEAST_FALL = 0.01  # of the loss, from one quarter of the run to the next: less is noise
SURE_AT = 2.0  # standard errors over runs


def still_rising(task: str, entries: Mapping[str, Sequence[Entry]], study: Study) -> bool:
    """Whether the dev loss of the runs that are for the task still falls at their ends."""
    falls = [
        fall
        for some in entries.values()
        for entry in some
        for part, run in zip(entry.candidate.models, entry.runs, strict=True)
        if task in part.scored
        and (fall := last_fall(dev_losses(task, study.run(run.specification()).scores())))
        is not None
    ]
    if not falls:
        return False
    mean = float(np.mean(falls))
    error = float(np.std(falls, ddof=1)) / np.sqrt(len(falls)) if len(falls) > 1 else 0.0
    return bool(mean >= LEAST_FALL and mean >= SURE_AT * error)


def dev_losses(task: str, scores: object) -> list[float]:
    """The task's loss on dev, evaluation by evaluation; `scores` is the table of a run's record."""
    rows = sorted(
        (row["step"], row["value"])
        for row in scores.to_pylist()  # type: ignore[attr-defined]
        if row["task"] == task and row["split"] == "dev" and row["metric"] == "loss"
    )
    return [value for _, value in rows if value is not None and np.isfinite(value)]


def last_fall(losses: Sequence[float]) -> float | None:
    """By which share the loss fell over the last quarter; None where evaluations are too few."""
    if len(losses) < FEWEST_EVALUATIONS:
        return None
    quarter = max(len(losses) // 4, 1)
    before, after = losses[-2 * quarter : -quarter], losses[-quarter:]
    level = abs(float(np.mean(before)))
    return float(np.mean(before) - np.mean(after)) / level if level > 0 else 0.0
