"""A run that is written in a few lines: its start, its rows and its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskmix.records import RecordWriter

SPECIFICATION: dict[str, Any] = {"toy": 1}
NAMES = ("news", "digits")


def begin(writer: RecordWriter | None, *names: str, **changes: Any) -> RecordWriter:
    """Starts the run that was claimed; with two tasks where no names are given."""
    assert writer is not None
    options: dict[str, Any] = {
        "specification": SPECIFICATION,
        "seed": 1,
        "label": "toy",
        "steps": 4,
    }
    writer.start(**(options | {"tasks": [{"name": name} for name in names or NAMES]} | changes))
    return writer


def add_steps(writer: RecordWriter, steps: Sequence[int], **changes: Any) -> None:
    """A row for each of the steps, of the two tasks in turn."""
    for step in steps:
        row: dict[str, Any] = {"probability": 0.5, "probabilities": None, "loss": 1 / step}
        row |= {"reward": None, "weight": None, "seconds": 0.1, "examples": 32}
        writer.add_step(step, step % 2, **(row | changes))
