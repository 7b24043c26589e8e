"""`check_tasks`: all that can be said of tasks without training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from taskmix.tasks._checking._columns import columns_seen
from taskmix.tasks._checking._document import FileRead, TaskCheck, TaskRead
from taskmix.tasks._checking._of_files import look_at_columns, look_at_texts
from taskmix.tasks._checking._of_tasks import Where, look_at_rows
from taskmix.tasks._checking._shift import shifted_columns, shifted_labels
from taskmix.tasks._formats import show_path
from taskmix.tasks._loading import SeenFiles, load_tasks, watching
from taskmix.tasks._looking import Finding, RowKeys, look_at
from taskmix.tasks._task import TaskSet

_ROWS_READ = 500_000  # to say where rows stand: each time a file is read again up to the row


def check_tasks(source: Any, **how: Any) -> TaskCheck:
    r"""What tasks are in a folder, what each column was taken for, and what is wrong with the rows.

    `source` and all options are those of `load_tasks`. Nothing is trained and nothing is written.

    >>> from pathlib import Path
    >>> rows = [f"{n},{n % 7},{n % 3}" for n in range(60)]
    >>> _ = Path("rows.csv").write_text("id,x,class\n" + "\n".join(rows) + "\n")
    >>> found = check_tasks("rows.csv")
    >>> [(column.name, column.kind, column.use) for column in found.columns[1:]]
    [('x', 'number', 'feature'), ('class', 'number', 'label')]
    """
    with watching() as seen:
        tasks = load_tasks(source, **how)
    return TaskCheck(
        source=str(source) if isinstance(source, str) or hasattr(source, "parts") else "",
        files=tuple(_files(seen)),
        tasks=tuple(_tasks(tasks)),
        columns=columns_seen(seen),
        notes=tasks.notes,
        findings=tuple(_findings(tasks, seen)),
    )


def _files(seen: Sequence[SeenFiles]) -> Iterator[FileRead]:
    known = set()
    for files in seen:
        for split, part in zip(files.stack.splits, files.stack.parts, strict=True):
            if part.path not in known:
                known.add(part.path)
                yield FileRead(
                    path=show_path(part.path),
                    format=part.format,
                    rows=part.table.num_rows,
                    split=split,
                )


def _tasks(tasks: TaskSet) -> Iterator[TaskRead]:
    for task in tasks:
        yield TaskRead(
            name=task.name,
            kind=task.kind,
            inputs=task.inputs,
            label=task.reading.label,
            classes=len(task.labels),
            metric=task.metric,
            by_imbalance=task.reading.by_imbalance,
            sizes=task.sizes,
        )


def _findings(tasks: TaskSet, seen: Sequence[SeenFiles]) -> Iterator[Finding]:
    keys = RowKeys()
    where = _places(seen)
    said: set[tuple[str, str]] = set()
    for files in seen:
        about = tuple(name for name in files.tasks if name in tasks.names)
        for finding in (*look_at_columns(files), *shifted_columns(files)) if about else ():
            # Tasks with the same files, or many folders of the same kind, need it said once.
            if (finding.kind, finding.words) not in said:
                said.add((finding.kind, finding.words))
                yield finding
    yield from look_at_texts([files for files in seen if set(files.tasks) & set(tasks.names)])
    # Contradictions are said below, with their rows.
    yield from (each for each in look_at(tasks, keys) if each.kind != "contradiction")
    for task in tasks:
        yield from look_at_rows(task, keys, where)
        yield from shifted_labels(task)


def _places(seen: Sequence[SeenFiles]) -> Where:
    """Where a row stands, as long as that does not take much reading."""
    files_of = {task: files for files in seen for task in files.tasks}
    left = _ROWS_READ

    def where(task: str, split: str, row: int) -> str | None:
        nonlocal left
        files = files_of.get(task)
        place = None if files is None else files.place(task, split, row)
        if files is None or place is None:
            return None
        starts = files.stack.starts
        left -= place - int(starts[np.searchsorted(starts, place, side="right") - 1])
        return files.stack.where(place) if left > 0 else None

    return where
