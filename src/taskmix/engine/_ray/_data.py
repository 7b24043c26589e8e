"""Tasks by way of Ray's object store: read once by the driver, held once on every machine.

Arrow tables and arrays travel beside the pickle, so processes of one machine read the same memory.
"""

from __future__ import annotations

from typing import Any

from taskmix.tasks import Split, Task, TaskSet

Plain = tuple[list[dict[str, Any]], tuple[str, ...], str]


def take_apart(tasks: TaskSet) -> Plain:
    """Plain values; tables that tasks share are the same object in all of them."""
    parts = [
        {
            "name": task.name,
            "kind": task.kind,
            "inputs": task.inputs,
            "labels": task.labels,
            "metric": task.metric,
            "source": task.source,
            "columns": task.columns,
            "reading": task.reading,
            "splits": {name: (each.inputs, each.targets) for name, each in task.splits.items()},
        }
        for task in tasks
    ]
    return parts, tasks.notes, tasks.content


def put_together(plain: Plain) -> TaskSet:
    """The tasks again, their content known without another look at every row."""
    parts, notes, content = plain
    tasks = tuple(
        Task(**{**part, "splits": {name: Split(*each) for name, each in part["splits"].items()}})
        for part in parts
    )
    return TaskSet(tasks, notes, [content])
