"""Data sets for a model of one's own: inputs that only their owner can read, held as they are.

What has columns (frames of all kinds, see `_loading/_in_memory.py`) is read as a file of a task folder
is, whatever model reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from taskmix.errors import InputError
from taskmix.tasks._frames import Pairs, is_table, pairs_of
from taskmix.tasks._held import HeldEncoding, held_tasks
from taskmix.tasks._loading import find_shapes, load_tasks, split_pairs
from taskmix.tasks._task import TaskSet


def gather_tasks(
    given: Any,
    *,
    hold: bool,
    collate: Any = None,
    metric: str | None = None,  # of every task; None: the usual one of its kind
    read: Callable[[Any], TaskSet] | None = None,  # what has columns; None: without any options
) -> tuple[TaskSet, HeldEncoding | None]:
    """Tasks of whatever `load_tasks` takes; with `hold`, pairs of input and target stay as they are.

    >>> train = (np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1]))
    >>> tasks, _ = gather_tasks({"first": (train, train)}, hold=False)
    >>> tasks["first"].sizes, tasks["first"].labels
    ({'train': 3, 'dev': 3}, ('0', '1'))
    """
    shapes = find_shapes(given)
    tables = {is_table(part): shape.name for shape in shapes for part in shape.parts.values()}
    if len(tables) > 1:
        raise InputError(
            f"All tasks should be given alike. Found columns for `{tables[True]}` and pairs of input "
            f"and target for `{tables[False]}`."
        )
    if True in tables or not hold:
        return (load_tasks(given, metric=metric) if read is None else read(given)), None
    pairs: dict[str, Mapping[str, Pairs]] = {}
    notes: list[str] = []
    for shape in shapes:
        name = shape.name or "task"
        parts = {split: pairs_of(name, part) for split, part in shape.parts.items()}
        pairs[name], note = split_pairs(parts)
        notes += [] if note is None else [f"`{name}`: {note}."]
    tasks, encoding = held_tasks(pairs, collate, metric=metric)
    return replace(tasks, notes=tuple(notes)), encoding
