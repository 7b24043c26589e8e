"""What every command says before it begins: how the tasks were read, and what was decided about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmix.cli._printing._display import echo

if TYPE_CHECKING:
    from taskmix.tasks import TaskSet


def print_reading(tasks: TaskSet, *, quiet: bool = False, err: bool = False) -> None:
    """A line for the tasks that were read alike, then the notes; `err` where answers are piped."""
    from taskmix.tasks import reading_lines

    if quiet:
        return
    for line in reading_lines(tasks):
        echo(line, err=err)
    for note in tasks.notes:
        echo(f"Note: {note}", err=err)


def reading_document(tasks: TaskSet) -> dict[str, Any]:
    """The same for `--json`."""
    from taskmix.tasks import readings_document

    return {"readings": readings_document(tasks), "reading_notes": list(tasks.notes)}
