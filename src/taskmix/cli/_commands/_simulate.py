"""`taskmix laws simulate`: artificial tasks, related to a real one as much as one likes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._printing._display import draw_table, echo, print_json
from taskmix.cli._printing._reading import print_reading, reading_document
from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.tasks import Task, TaskSet


def simulate(
    folder: Annotated[
        str, typer.Argument(help="A task folder with one task, or --real says which.")
    ],
    out: Annotated[Path, typer.Option(help="The task folder to write, new or empty.")],
    count: Annotated[int, typer.Option(min=1, help="Artificial tasks to make.")] = 5,
    alpha: Annotated[
        str | None,
        typer.Option(help="How often a label is kept; one number, or one a task: 0.6,0.9"),
    ] = None,
    ami: Annotated[
        str | None, typer.Option(help="The adjusted mutual information wanted, instead of --alpha.")
    ] = None,
    samples: Annotated[
        str | None,
        typer.Option(help="Rows, or words, to train on, one number or one a task [all]."),
    ] = None,
    real: Annotated[
        str | None, typer.Option(help="The task to start from, where there are several.")
    ] = None,
    seed: Annotated[int, typer.Option()] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Make artificial tasks from a real one and write them as a task folder.

    The label of a row is kept with probability alpha and otherwise becomes any other. How related
    each artificial task came out is its adjusted mutual information with the real one.

    Examples:

        taskmix laws simulate conll2003/ --count 5 --alpha 0.9 --out related/

        taskmix laws simulate reviews/ --real books --count 3 --ami 0.1,0.5,0.9 --out three/
    """
    import numpy as np

    from taskmix.files import check_outside
    from taskmix.tasks import check_new_folder, load_tasks, simulate_tasks, write_tasks

    if (alpha is None) == (ami is None):
        raise OptionError("Either --alpha or --ami should be given. Found both or neither.")
    check_new_folder(out)
    check_outside(out, Path(folder), what="the artificial tasks")
    loaded = load_tasks(folder)
    task = _real_task(loaded, real)
    loaded = loaded.select([task.name])
    print_reading(loaded, quiet=json_)
    made = simulate_tasks(
        task,
        count=count,
        alpha=_numbers("--alpha", alpha),
        ami=_numbers("--ami", ami),
        samples=_whole("--samples", samples),
        generator=np.random.default_rng(seed),
    )
    write_tasks(made.tasks, out)
    rows = [
        {
            "task": each.name,
            "labels": len(each.labels),
            "samples": len(each.splits["train"].targets),  # rows, or words, to train on
            "alpha": float(kept),
            "ami": float(information),
        }
        for each, kept, information in zip(
            made.tasks[1:], made.alphas, made.information, strict=True
        )
    ]
    if json_:
        document = {"folder": str(out), "real": task.name, "seed": seed, "tasks": rows}
        print_json(document | reading_document(loaded))
        return
    cells = [
        (
            str(row["task"]),
            f"{row['labels']}",
            f"{row['samples']:,}",
            f"{row['alpha']:.4f}",
            f"{row['ami']:.4f}",
        )
        for row in rows
    ]
    columns = ("task", "labels", "samples", "alpha", "ami")
    draw_table(columns, cells, title=f"Beside {task.name}")
    echo(f"Wrote {len(made.tasks)} tasks to {out}.")


def _real_task(tasks: TaskSet, name: str | None) -> Task:
    if name is not None:
        return tasks[name]
    if len(tasks) > 1:
        raise InputError(
            f"The folder should have one task, or --real should name one. Found "
            f"{', '.join(tasks.names[:8])}."
        )
    return tasks[0]


def _numbers(option: str, text: str | None) -> float | list[float] | None:
    if text is None:
        return None
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        raise OptionError(
            f"`{option}` should be a number, or several separated by commas. Found {text!r}."
        ) from None
    return values[0] if len(values) == 1 else values


def _whole(option: str, text: str | None) -> int | list[int] | None:
    values = _numbers(option, text)
    if values is None:
        return None
    several = values if isinstance(values, list) else [values]
    if any(value != int(value) for value in several):
        raise OptionError(f"`{option}` should be whole. Found {text!r}.")
    whole = [int(value) for value in several]
    return whole if isinstance(values, list) else whole[0]
