"""The sequences of a task set: those to learn from, and those to judge by."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import InputError
from taskmix.sequences._sequences import Observed

if TYPE_CHECKING:
    from taskmix.tasks import Task, TaskSet


Rows = list[list[str]] | list[NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class TaskSequences:
    """Sequences, and the name of the task of each."""

    sequences: list[Any]  # words, or arrays [time, dimension]
    tasks: list[str]

    def of_tasks(self, names: Collection[Hashable]) -> TaskSequences:
        """Those of these tasks alone."""
        kept = [place for place, name in enumerate(self.tasks) if name in names]
        return TaskSequences(
            [self.sequences[place] for place in kept], [self.tasks[place] for place in kept]
        )


@dataclass(frozen=True, eq=False)
class SequenceData:
    """What a mixture is learned from, and what it is judged by."""

    train: TaskSequences
    held_out: TaskSequences
    observes: Observed
    content: str  # names the sequences: a hash of them


def split_sequences(tasks: TaskSet) -> SequenceData:
    """Train sequences, and those of test to judge by, or of dev where no task has test.

    >>> from pathlib import Path
    >>> from taskmix.tasks import load_tasks
    >>> _ = Path("x.csv").write_text("task,sequence,split\\na,go on,train\\na,go,test\\n")
    >>> data = split_sequences(load_tasks("x.csv", kind="sequences"))
    >>> data.train.sequences, data.held_out.sequences
    ([['go', 'on']], [['go']])
    """
    for task in tasks:
        if task.inputs != "sequences":
            raise InputError(
                f"Tasks should be sequences. Found that `{task.name}` is {task.inputs}. See "
                "docs/task-folders.md for how sequences are written."
            )
    train = _split(tasks, "train")
    held_out = _split(tasks, "test")
    if not held_out.sequences:
        held_out = _split(tasks, "dev")
    if not held_out.sequences:
        raise InputError("Tasks should have sequences to hold out. Found neither test nor dev.")
    symbols = not train.sequences or isinstance(train.sequences[0], list)
    return SequenceData(train, held_out, "symbols" if symbols else "vectors", tasks.content)


def _split(tasks: TaskSet, split: str) -> TaskSequences:
    sequences: list[Any] = []
    names: list[str] = []
    for task in tasks:
        if split in task.splits:
            rows = _rows(task, split)
            sequences += rows
            names += [task.name] * len(rows)
    return TaskSequences(sequences, names)


def _rows(task: Task, split: str) -> Rows:
    table = task.splits[split].inputs
    if "symbols" in table.column_names:
        words: list[list[str]] = table.column("symbols").to_pylist()
        return words
    return [
        np.array([[np.nan if number is None else number for number in each] for each in row])
        for row in table.column("values").to_pylist()
    ]
