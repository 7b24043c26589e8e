"""Sequences in the order of a file's rows, for what is asked of a model that exists already."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taskmix.tasks._columns import StackedFiles, match_column
from taskmix.tasks._formats import bad_file, read_rows
from taskmix.tasks._loading._flat import task_files
from taskmix.tasks._loading._sequences import gather_sequences
from taskmix.tasks._loading._settings import Symbols, TaskSettings


@dataclass(frozen=True, eq=False)
class SequenceRows:
    """The sequences of a file, and the task of each where the file says it.

    >>> from pathlib import Path
    >>> _ = Path("x.csv").write_text("task,sequence\\na,go on\\nb,go\\n")
    >>> rows = read_sequences(Path("x.csv"))
    >>> rows.sequences, rows.tasks
    ([['go', 'on'], ['go']], ['a', 'b'])
    """

    sequences: list[Any]  # words, or arrays [time, dimension]
    tasks: list[str] | None


def read_sequences(
    path: Path,
    *,
    symbols: Symbols | None = None,
    sequence_column: str | None = None,
    task_column: str | None = None,
    time_column: str | None = None,
    first_symbol_is_task: bool | None = None,
) -> SequenceRows:
    """All sequences of a file, in the order of its rows; a column `task` is taken for the task's.

    In a folder every file is a task, which is called after it.

    >>> from pathlib import Path
    >>> _ = Path("words.txt").write_text("ab\\nba\\n")
    >>> read_sequences(Path("words.txt"), symbols="characters").sequences
    [['a', 'b'], ['b', 'a']]
    """
    settings = TaskSettings(
        sequence=sequence_column,
        time=time_column,
        symbols=symbols,
        first_symbol_is_task=first_symbol_is_task,
    )
    if path.is_dir():
        files = task_files(sorted(path.iterdir()))
        if not files:
            bad_file(
                path, "The folder should have a file for each task.", "none", "Check the path."
            )
        found = [_read(file, settings, task_column) for file in files]
        return SequenceRows(
            [row for rows in found for row in rows.sequences],
            [
                name
                for file, rows in zip(files, found, strict=True)
                for name in rows.tasks or [file.name.split(".")[0]] * len(rows.sequences)
            ],
        )
    return _read(path, settings, task_column)


def _read(path: Path, settings: TaskSettings, task_column: str | None) -> SequenceRows:
    stack = StackedFiles({"": read_rows(path)})
    column = task_column or match_column(stack.names, "task")
    if column is not None and stack.parts[0].format == "txt":
        column = None
    kept = [] if column is None else [match_column(stack.names, column) or column]
    gathered, inner = gather_sequences(stack, settings, kept)
    named = inner or (kept[0] if kept else None)
    tasks = None
    if named is not None:
        tasks = [str(cell) for cell in gathered.column(named).to_pylist()]
    table = gathered.parts[0].table
    if "symbols" in table.column_names:
        return SequenceRows(table.column("symbols").to_pylist(), tasks)
    vectors = [
        np.array([[np.nan if number is None else number for number in each] for each in row])
        for row in table.column("values").to_pylist()
    ]
    return SequenceRows(vectors, tasks)
