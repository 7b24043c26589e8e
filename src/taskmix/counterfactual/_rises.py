"""Whether the tasks of logged runs learned anything that shows on held-out rows.

The reward of a step is measured on the rows trained on. A task whose labels mean nothing has a high
loss that falls at every other visit, and is memorised in the end: the reward of Eq. 16 and the training
losses both take that for progress. Only dev scores tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from taskmix.numerics import Interval, mean_interval
from taskmix.records import RunFolder


def rises_of_scores(
    runs: Sequence[RunFolder], *, better_lower: Sequence[str] = (), split: str = "dev"
) -> dict[str, Interval]:
    """How much each task's score rose within a run, with an interval over runs.

    From the mean of the first quarter of a run's evaluations to that of the last quarter. A metric
    in `better_lower` has its sign changed. A task that was evaluated fewer than twice is left out.
    """
    found: dict[str, list[float]] = {}
    for run in runs:
        table = run.scores()
        table = table.filter(
            pc.and_(pc.equal(table["split"], split), pc.not_equal(table["metric"], "loss"))
        ).sort_by("step")
        tasks = np.array(table["task"].to_pylist())
        metrics = table["metric"].to_pylist()
        values = table["value"].to_numpy(zero_copy_only=False)
        for task in dict.fromkeys(tasks.tolist()):
            here = np.flatnonzero(tasks == task)
            if len(here) < 2:
                continue
            part = max(len(here) // 4, 1)
            sign = -1.0 if metrics[here[0]] in better_lower else 1.0
            rise = values[here[-part:]].mean() - values[here[:part]].mean()
            found.setdefault(task, []).append(sign * float(rise))
    return {task: mean_interval(rises) for task, rises in found.items()}
