"""The columns of all files, those that are alike in several sets of files once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from taskmix.tasks._checking._document import ColumnSeen
from taskmix.tasks._columns import UNUSABLE, StackedFiles, count_values, role_of
from taskmix.tasks._formats import quoted
from taskmix.tasks._loading import SeenFiles

_LONGEST_EXAMPLE = 40  # characters
_UNCOUNTED = frozenset({"text", *UNUSABLE})  # how many values these have tells nobody anything


def columns_seen(seen: Sequence[SeenFiles]) -> tuple[ColumnSeen, ...]:
    """In the order in which they came up."""
    found: dict[tuple[str, str, str], list[ColumnSeen]] = {}
    for files in seen:
        for column in _columns(files):
            found.setdefault((column.name, column.kind, column.use), []).append(column)
    return tuple(
        replace(
            columns[0],
            values=max(each.values for each in columns),
            missing=float(np.mean([each.missing for each in columns])),
            files=len(columns),
        )
        for columns in found.values()
    )


def _columns(files: SeenFiles) -> Iterator[ColumnSeen]:
    stack = files.stack
    for name in stack.names:
        role = role_of(stack, name)
        is_read = not (role.kind == "other" and any(name in p.unusable for p in stack.parts))
        missing, example = _cells(stack, name) if is_read else (0.0, "")
        yield ColumnSeen(
            name=name,
            kind=role.kind,
            use=_use(files, name),
            values=0 if role.kind in _UNCOUNTED else count_values(stack, role),
            missing=missing,
            example=example,
        )


def _use(files: SeenFiles, name: str) -> str:
    if name == files.task_column:
        return "task"
    if name == files.split_column:
        return "split"
    if name in files.targets:
        return "label"
    left_out = ""
    for plan in files.plans:
        if name in plan.columns:
            return "feature" if plan.kind == "table" else plan.kind.replace("pair", "text")
        if name == plan.answer:
            return "answer"
        left_out = left_out or dict(plan.left_out).get(name, "")
    if name in files.ignored:
        return "left out (as asked)"
    return f"left out ({left_out})" if left_out else "left out"


def _cells(stack: StackedFiles, name: str) -> tuple[float, str]:
    """The share of missing cells, and the first that is not."""
    nothing = rows = 0
    example = ""
    for part in stack.parts:
        if name not in part.table.column_names:
            continue
        cells = part.table.column(name)
        rows += len(cells)
        nothing += cells.null_count
        if not example:
            first = next((cell.as_py() for cell in cells if cell.is_valid), None)
            example = "" if first is None else _shown(first)
    odd = None
    if role_of(stack, name).kind in ("number", "category", "id"):
        cells = stack.column(name)
        nothing, odd = cells.null_count, stack.odd(name)
    if odd is not None and not odd.are_missing:
        example = quoted(odd.value, limit=_LONGEST_EXAMPLE)
    return nothing / max(rows, 1), example


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else quoted(value, limit=_LONGEST_EXAMPLE)
    text = " ".join(text[: 4 * _LONGEST_EXAMPLE].split())
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 3]}..."
