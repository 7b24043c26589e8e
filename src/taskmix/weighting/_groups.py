"""Which tasks are compared where: among those that train the same of the shared parameters.

Of tasks A and B with one encoder and C and D with another, A's gradient of the second encoder is not a
short one: there is none. As a row of zeros it would still be compared (MGDA would find that nothing
descends all losses, and every task's weight would depend on tasks it shares nothing with). So the shared
parameters fall into parts by the tasks whose losses reach them, and a method is asked once for each part
that two tasks or more train, among these tasks alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SharedPart:
    """Parameters that the same tasks train."""

    tasks: list[int]  # places among all tasks, ascending
    tensors: list[int]  # places among the shared tensors


def shared_parts(
    reached: Sequence[Sequence[bool]],  # [tensor][task], whether the task's loss reaches the tensor
    sizes: Sequence[int],  # [tensor], its numbers
) -> list[SharedPart]:
    """The parts that two tasks or more train; those of the most tasks, then the largest, first."""
    places: dict[tuple[int, ...], list[int]] = {}
    for tensor, row in enumerate(reached):
        tasks = tuple(task for task, there in enumerate(row) if there)
        if len(tasks) > 1:
            places.setdefault(tasks, []).append(tensor)
    parts = [SharedPart(list(tasks), tensors) for tasks, tensors in places.items()]
    return sorted(
        parts, key=lambda part: (-len(part.tasks), -sum(sizes[n] for n in part.tensors), part.tasks)
    )
