"""Tasks in memory, for processes that do not share it: taken apart, and put together again.

Processes of this machine find the rows in files that they map into memory, written once and gone with
the tasks. Ray's take them from its object store: tables and arrays travel beside the pickle, so
processes of one machine read the same memory there, too.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from taskmix.errors import RunError
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


@dataclass(frozen=True)
class StoredTasks:
    """Tasks whose rows lie in files: what is left of them is small."""

    folder: str
    plain: Plain  # with the numbers of files in place of tables and targets

    def load(self) -> TaskSet:
        parts, notes, content = self.plain
        folder, tables = Path(self.folder), dict[int, pa.Table]()

        def table(number: int) -> pa.Table:
            if number not in tables:
                with pa.memory_map(str(folder / f"{number}.arrow")) as file:
                    tables[number] = pa.ipc.open_file(file).read_all()
            return tables[number]

        try:
            whole = [
                {
                    **part,
                    "splits": {
                        name: (table(rows), np.load(folder / f"{targets}.npy", allow_pickle=False))
                        for name, (rows, targets) in part["splits"].items()
                    },
                }
                for part in parts
            ]
        except OSError as error:
            raise RunError(
                "Tasks given in memory should be found by processes of the machine that has them. Found "
                f"no `{folder}` ({error}). Write them to a folder with `taskmix.tasks.write_tasks`."
            ) from error
        return put_together((whole, notes, content))


_stored: WeakKeyDictionary[TaskSet, tuple[tempfile.TemporaryDirectory[str], StoredTasks]]
_stored = WeakKeyDictionary()  # a folder is deleted with the tasks, or when the process ends


def store(tasks: TaskSet) -> StoredTasks:
    """The rows in files of a temporary folder, written when they are first asked for."""
    if tasks not in _stored:
        folder = tempfile.TemporaryDirectory(prefix="taskmix-tasks-")
        _stored[tasks] = (folder, _store(tasks, Path(folder.name)))
    return _stored[tasks][1]


def _store(tasks: TaskSet, folder: Path) -> StoredTasks:
    parts, notes, content = take_apart(tasks)
    tables: dict[int, int] = {}  # the number of each table: tasks share some
    count = 0
    for part in parts:
        numbers = {}
        for name, (table, targets) in part["splits"].items():
            if id(table) not in tables:
                tables[id(table)] = len(tables)
                path = str(folder / f"{tables[id(table)]}.arrow")
                with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
            np.save(folder / f"{count}.npy", targets, allow_pickle=False)
            numbers[name] = (tables[id(table)], count)
            count += 1
        part["splits"] = numbers
    return StoredTasks(str(folder), (parts, notes, content))
