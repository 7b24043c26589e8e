"""What every command says before it begins: how the tasks were read, and what was decided about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmix.cli._printing._display import echo, say_flags_of

if TYPE_CHECKING:
    from taskmix.engine import Run
    from taskmix.tasks import TaskSet


def print_reading(tasks: TaskSet, *, quiet: bool = False, err: bool = False) -> None:
    """A line for the tasks that were read alike, then the notes; `err` where answers are piped."""
    from taskmix.tasks import reading_lines

    if quiet:
        return
    for line in reading_lines(tasks):
        echo(line, err=err)
    for note in tasks.notes:
        echo(f"Note: {say_flags_of(note)}", err=err)


def print_tuning(run: Run, *, quiet: bool = False) -> None:
    """What is tuned of a pretrained model; of texts without one, what one would bring."""
    from taskmix.models import tuning_of

    if quiet:
        return
    tuning = tuning_of(run.architecture)
    kinds = {task.inputs for task in run.load()}
    if tuning is not None:
        echo(f"Tuning: {_TUNING[tuning]}")
    elif kinds <= {"text", "pair", "tokens"}:
        echo(
            "Hint: these are texts, and this model begins with nothing but its word vectors, if any. A "
            "pretrained encoder usually scores far higher on few rows, and is read only once on a CPU: "
            "--model FOLDER, or a name on the hub such as sentence-transformers/all-MiniLM-L6-v2."
        )


_TUNING = {
    "heads": "heads, on vectors that the frozen model reads once. --tune adapters trains low-rank "
    "additions to it, --tune all every weight.",
    "adapters": "adapters, low-rank additions to the frozen model. --tune heads trains on vectors that "
    "it reads once, --tune all every weight.",
    "all": "all, every weight of the model. --tune adapters trains low-rank additions to it, --tune "
    "heads on vectors that it reads once.",
}


def reading_document(tasks: TaskSet) -> dict[str, Any]:
    """The same for `--json`."""
    from taskmix.tasks import readings_document

    return {
        "readings": readings_document(tasks),
        "reading_notes": list(map(say_flags_of, tasks.notes)),
    }
