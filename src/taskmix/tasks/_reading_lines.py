"""How tasks were read, a line or a document for all that were read alike."""

from __future__ import annotations

from typing import Any

from taskmix.tasks._formats import tame
from taskmix.tasks._reading import some
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
    return (*lines, f"... and {rest} more tasks") if rest else tuple(lines)


def readings_document(tasks: TaskSet) -> list[dict[str, Any]]:
    """Plain values, those of equal readings together.

    >>> import pyarrow as pa
    >>> rows = {"train": pa.table({"x": [0.5, 1.5, 3.0], "label": ["no", "yes", "yes"]})}
    >>> (document,) = readings_document(tables_as_tasks({"a": rows, "b": rows}))
    >>> document["tasks"], document["columns"], document["classes"]
    (['a', 'b'], ('x',), 2)
    """
    return [{"tasks": list(names), **each.document()} for each, names in tasks.readings().items()]
