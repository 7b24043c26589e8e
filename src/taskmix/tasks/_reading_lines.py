"""How tasks were read, a line or a document for all that were read alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from taskmix.tasks._formats._words import tame
from taskmix.tasks._reading import some
from taskmix.tasks._scoring._metrics import class_shares
from taskmix.tasks._task import TaskSet

LINE_WIDTH = 120
MOST_LINES = 8  # more would push the first answer of a command off the screen


def reading_lines(
    tasks: TaskSet, *, most: int = MOST_LINES, width: int = LINE_WIDTH
) -> tuple[str, ...]:
    """One line for the tasks that were read alike, so many at most.

    >>> import pyarrow as pa
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> print(*reading_lines(tables_as_tasks({"a": rows, "b": rows})))
    Read all 2 tasks: table of 1 column; 2 classes of `label`; accuracy; dev is a tenth of train
    """
    groups = list(tasks.readings().items())
    shown = groups if len(groups) <= most else groups[: most - 1]
    lines = []
    for reading, names in shown:
        about = some(names) if len(groups) > 1 or len(names) == 1 else f"all {len(names)} tasks"
        line = tame(f"Read {about}: {reading}")
        lines.append(line if len(line) <= width else f"{line[: width - 3]}...")
    rest = sum(len(names) for _, names in groups[len(shown) :])
    if rest:
        lines.append(f"... and {rest} more tasks")
    return (*lines, *_imbalance_lines(tasks))


def _imbalance_lines(tasks: TaskSet) -> Iterator[str]:
    """One for each metric that was chosen because of how the classes are divided."""
    chosen = [task for task in tasks if task.reading.by_imbalance]
    for metric in dict.fromkeys(task.metric for task in chosen):
        some_tasks = [task for task in chosen if task.metric == metric]
        shares = [class_shares(task.labels, task.splits["train"].targets) for task in some_tasks]
        constant = float(np.median([share.max() for share in shares]))
        about = (
            f"{len(some_tasks)} tasks have"
            if len(some_tasks) > 1
            else f"`{some_tasks[0].name}` has"
        )
        if metric == "auc":
            what = f"{_percent([share.min() for share in shares])} of its rows in the rarer class"
        else:
            what = (
                f"{_percent([share.max() for share in shares])} of its rows in the commonest class"
            )
        what = what.replace("its", "their") if len(some_tasks) > 1 else what
        yield tame(
            f"{about} {what}: scored by {metric}, since a constant answer has accuracy {constant:.2f}. "
            "Another is named by --metric, or `metric` in task.toml."
        )


def _percent(shares: Sequence[float]) -> str:
    low, high = (f"{100 * share:.2g}" for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def readings_document(tasks: TaskSet) -> list[dict[str, Any]]:
    """Plain values, those of equal readings together.

    >>> import pyarrow as pa
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> (document,) = readings_document(tables_as_tasks({"a": rows, "b": rows}))
    >>> document["tasks"], document["columns"], document["classes"]
    (['a', 'b'], ('x',), 2)
    """
    return [{"tasks": list(names), **each.document()} for each, names in tasks.readings().items()]
