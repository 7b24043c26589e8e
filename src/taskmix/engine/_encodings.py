"""Tasks as tensors, kept for the next run of the same process that reads the same tasks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from torch import Tensor

from taskmix.tasks import EncodedTasks, TaskSet

LIMIT = 1 << 29  # bytes of all that is kept; the latest is kept whatever its size


class KeptEncodings:
    """The encodings that were used last, up to a number of bytes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[TaskSet, Hashable], tuple[EncodedTasks, int]] = OrderedDict()

    def get(
        self, tasks: TaskSet, options: Hashable, make: Callable[[], EncodedTasks]
    ) -> EncodedTasks:
        """What `make` gave for these tasks, as an object, and these options."""
        key = (tasks, options)
        if key not in self._kept:
            found = make()
            self._kept[key] = (found, _bytes(found))
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > self._limit:
            self._kept.popitem(last=False)
        return self._kept[key][0]


def _bytes(tasks: EncodedTasks) -> int:
    inputs = {id(split.inputs): split.inputs for task in tasks for split in task.splits.values()}
    tensors = [tensor for each in inputs.values() for tensor in tensors_of(each)]
    if tasks.vectors is not None:
        tensors.append(tasks.vectors)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def tensors_of(inputs: Any) -> list[Tensor]:
    """All tensors that some inputs hold."""
    found: list[Tensor] = []
    for value in vars(inputs).values():
        if isinstance(value, Tensor):
            found.append(value)
        elif hasattr(value, "ids"):
            found += tensors_of(value)
    return found
