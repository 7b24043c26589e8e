"""What the loader decided by itself, one sentence for all tasks it holds for."""

from __future__ import annotations

from collections.abc import Collection

from taskmix.tasks._formats import tame

_NAMED = 5  # tasks named in a sentence; the rest are counted


class Notes:
    """Collects remarks about tasks."""

    def __init__(self) -> None:
        # By remark, in the order they came up; the inner one is an ordered set.
        self._tasks: dict[str, dict[str, None]] = {}

    def add(self, remark: str, task: str | None = None) -> None:
        """Keep a remark (without a full stop), about one task or about the whole."""
        tasks = self._tasks.setdefault(remark, {})
        if task is not None:
            tasks[task] = None

    def sentences(self, kept: Collection[str]) -> tuple[str, ...]:
        """One sentence a remark, as far as it is about the tasks kept."""
        result = []
        for remark, tasks in self._tasks.items():
            about = [f"`{task}`" for task in tasks if task in kept]
            if about:
                more = len(about) - _NAMED
                named = ", ".join(about[:_NAMED]) + (f" and {more} more tasks" if more > 0 else "")
                result.append(tame(f"{named}: {remark}."))
            elif not tasks:
                result.append(tame(f"{remark[0].upper()}{remark[1:]}."))
        return tuple(result)
