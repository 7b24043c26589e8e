"""Who wants to see the files themselves as tasks are made of them: `check_tasks`.

A `TaskSet` has only what is learned from. What a column was taken for, which files were read and where a
row stands in them is known while they are read, and is handed to whoever watches; nobody pays for it
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._loading._inputs import InputPlan
from taskmix.tasks._loading._layout import RowLayout


@dataclass(frozen=True, eq=False, kw_only=True)
class SeenFiles:
    """The files of one origin, and what was made of them."""

    stack: StackedFiles
    tasks: tuple[str, ...]  # ordered by task column, and then by target
    targets: tuple[str | None, ...]  # columns; None of sequences
    plans: tuple[InputPlan, ...]  # of each target
    task_column: str | None
    split_column: str | None
    ignored: frozenset[str]
    layout: RowLayout | None  # None of sequences that were gathered from several rows each
    classes: NDArray[np.int64] | None  # [row], of the first target, where it has classes

    def place(self, task: str, split: str, row: int) -> int | None:
        """The row of the stack that is a task's row."""
        if self.layout is None:
            return None
        group = self.tasks.index(task) // len(self.targets)
        piece = self.layout.pieces[group][split]
        return int(self.layout.order[piece][row])

    def rows_of(self, split: str) -> NDArray[np.int64]:
        """Rows of the stack that are in that split of any task."""
        if self.layout is None:
            return np.zeros(0, dtype=np.int64)
        order = self.layout.order
        parts = [order[group[split]] for group in self.layout.pieces if split in group]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))


_watcher: ContextVar[list[SeenFiles] | None] = ContextVar("_watcher", default=None)


@contextmanager
def watching() -> Iterator[list[SeenFiles]]:
    """The files of all tasks that are made inside, in their order."""
    seen: list[SeenFiles] = []
    token = _watcher.set(seen)
    try:
        yield seen
    finally:
        _watcher.reset(token)


def watcher() -> list[SeenFiles] | None:
    """Where to put what is seen; None where nobody watches."""
    return _watcher.get()
