"""`taskmix simulate`: artificial tasks, related to a real one as much as one likes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._options import ReadingOptions
from taskmix.cli._printing._display import echo, print_json, show
from taskmix.cli._printing._reading import print_reading, reading_document
from taskmix.errors import InputError, OptionError

if TYPE_CHECKING:
    from taskmix.tasks import Simulation, Task, TaskSet


def simulate(
    reading: ReadingOptions,
    out: Annotated[Path, typer.Option("--out", help="The task folder to write, new or empty.")],
    folder: Annotated[
        str | None, typer.Argument(help="A task folder with one task, or --real says which.")
    ] = None,
    positives: Annotated[
        float | None,
        typer.Option(
            "--positives",
            help="Instead of a folder: a table with this share of positives, a task that helps it and "
            "one that harms it.",
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Artificial tasks to make.")] = 5,
    alpha: Annotated[
        str | None,
        typer.Option(
            "--alpha", help="How often a label is kept; one number, or one a task: 0.6,0.9"
        ),
    ] = None,
    ami: Annotated[
        str | None,
        typer.Option("--ami", help="The adjusted mutual information wanted, instead of --alpha."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option("--labels", help="Labels of an artificial task [as many as the real one]."),
    ] = None,
    samples: Annotated[
        str | None,
        typer.Option(
            "--samples", help="Rows, or words, to train on, one number or one a task [all]."
        ),
    ] = None,
    real_samples: Annotated[
        int | None, typer.Option("--real-samples", min=1, help="Those of the real task [as many].")
    ] = None,
    real: Annotated[
        str | None, typer.Option("--real", help="The task to start from, where there are several.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Make artificial tasks from a real one and write them as a task folder.

    The label of a row is kept with probability alpha and otherwise becomes any other. How related
    each artificial task came out is its adjusted mutual information with the real one. With
    --positives there is no real task: all three are drawn, and it is known which helps.

    Examples:

        taskmix simulate conll2003/ --count 5 --alpha 0.9 --out related/

        taskmix simulate reviews/ --real books --count 3 --ami 0.1,0.5,0.9 --samples 2000 --out three/

        taskmix simulate --positives 0.06 --out rare/
    """
    if positives is not None:
        given = {"--alpha": alpha, "--ami": ami, "--labels": labels, "--samples": samples}
        given |= {"--real": real, "a folder": folder}
        _write_imbalanced(out, positives, real_samples, seed, given, json_=json_)
        return
    if folder is None:
        raise OptionError("A task folder, or --positives, should be given. Found neither.")
    import numpy as np

    from taskmix.tasks import load_tasks, simulate_tasks, write_tasks

    if (alpha is None) == (ami is None):
        raise OptionError("Either --alpha or --ami should be given. Found both or neither.")
    _check_folder(out, folder)
    loaded = load_tasks(folder, **reading.keywords())
    task = _real_task(loaded, real)
    loaded = loaded.select([task.name])
    print_reading(loaded, quiet=json_)
    made = simulate_tasks(
        task,
        count=count,
        alpha=_numbers("--alpha", alpha),
        ami=_numbers("--ami", ami),
        labels=_whole("--labels", labels),
        samples=_whole("--samples", samples),
        real_samples=real_samples,
        generator=np.random.default_rng(seed),
    )
    write_tasks(made.tasks, out)
    rows = simulated_rows(made)
    if json_:
        document = {"folder": str(out), "real": task.name, "seed": seed}
        print_json(document | {"tasks": list(map(asdict, rows))} | reading_document(loaded))
        return
    print_simulated(rows, beside=task.name)
    echo(f"Wrote {len(made.tasks)} tasks to {out}.")


def _write_imbalanced(
    out: Path,
    positives: float,
    rows: int | None,
    seed: int,
    given: Mapping[str, str | None],
    *,
    json_: bool,
) -> None:
    """Writes the table with a rare class; `given` are options that say how a real task is changed."""
    import numpy as np

    from taskmix.tasks import check_new_folder, simulate_imbalanced, write_tasks

    for name, value in given.items():
        if value is not None:
            raise OptionError(f"With --positives no task is changed. Found {name}. Leave it out.")
    check_new_folder(out)
    sizes = {} if rows is None else {"rows": rows}
    made = simulate_imbalanced(positives=positives, generator=np.random.default_rng(seed), **sizes)
    write_tasks(made, out)
    if json_:
        tasks = [{"task": task.name, "rows": task.size, "metric": task.metric} for task in made]
        print_json({"folder": str(out), "seed": seed, "positives": positives, "tasks": tasks})
        return
    echo(f"Wrote {', '.join(f'{task.name} ({task.size:,} rows)' for task in made)} to {out}.")


@dataclass(frozen=True)
class SimulatedRow:
    """An artificial task and how related it came out."""

    task: str
    labels: int
    samples: int  # rows, or words, to train on
    alpha: float
    ami: float


def simulated_rows(made: Simulation) -> list[SimulatedRow]:
    """The artificial tasks in their order."""
    found = zip(made.tasks[1:], made.alphas, made.information, strict=True)
    return [
        SimulatedRow(
            task=task.name,
            labels=len(task.labels),
            samples=len(task.splits["train"].targets),
            alpha=float(alpha),
            ami=float(information),
        )
        for task, alpha, information in found
    ]


def print_simulated(rows: list[SimulatedRow], *, beside: str) -> None:
    """The rows as a table."""
    from rich import box
    from rich.table import Table

    table = Table(title=f"Beside {beside}", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("task", "labels", "samples", "alpha", "ami"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for row in rows:
        sizes = (str(row.labels), f"{row.samples:,}")
        table.add_row(row.task, *sizes, f"{row.alpha:.4f}", f"{row.ami:.4f}")
    show(table)


def _check_folder(out: Path, folder: str) -> None:
    from taskmix.files import check_outside
    from taskmix.tasks import check_new_folder

    check_new_folder(out)
    check_outside(out, Path(folder), what="the artificial tasks")


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
