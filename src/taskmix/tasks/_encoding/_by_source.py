"""Tasks encoded source by source, where what is made of one does not depend on the others.

A thousand runs on subsets of the same tasks then encode every task once, and hold the same tensors, of
which a fleet needs one copy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from taskmix.tasks._encoding._encoded import EncodedTasks
from taskmix.tasks._kept import KeptByTable
from taskmix.tasks._task import TaskSet

_kept: KeptByTable[EncodedTasks] = KeptByTable()


def encode_by_source(
    tasks: TaskSet,
    options: Hashable,  # all else that an encoding depends on
    encode: Callable[[TaskSet], EncodedTasks],  # the tasks of one source
) -> EncodedTasks:
    """The tasks of each source as `encode` gives them, in the order of `tasks`."""
    sources: dict[str, list[str]] = {}
    for task in tasks:
        sources.setdefault(task.source, []).append(task.name)
    parts = [_part(tasks.select(names), options, encode) for names in sources.values()]
    if len(parts) == 1:
        return parts[0]
    found = {task.name: task for part in parts for task in part}
    extra: dict[str, Any] = {}
    for part in parts:
        for name, value in part.extra.items():
            known = extra.get(name)
            both = isinstance(value, Mapping) and isinstance(known, Mapping)
            extra[name] = {**known, **value} if both else value  # type: ignore[dict-item]
    return EncodedTasks(tuple(found[name] for name in tasks.names), extra=extra)


def _part(
    tasks: TaskSet, options: Hashable, encode: Callable[[TaskSet], EncodedTasks]
) -> EncodedTasks:
    tables = [split.inputs for task in tasks for split in task.splits.values()]
    if not tables:
        return encode(tasks)
    # The tasks themselves are part of the key: others may share their rows.
    key = (options, tuple(map(id, tasks)))
    known = _kept.get(tables[0], key)
    if known is None:
        known = _kept.put(tables[0], key, encode(tasks))
    return known
