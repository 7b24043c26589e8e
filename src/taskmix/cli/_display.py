"""What people see: progress on standard error, tables on standard output.

Everything a command prints goes through this file, which makes names safe to show: they come from files
and may have anything in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from taskmix.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.table import Table

    from taskmix.engine import Progress, Run
    from taskmix.training import Event


def echo(words: str, *, err: bool = False) -> None:
    """One line on standard output, or on standard error."""
    typer.echo(printable(words), err=err)


def note(words: str) -> None:
    """What should be known and changes nothing, on standard error: JSON may be on the other."""
    echo(f"Note: {words}", err=True)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """One object on standard output; NaN is written as null, which every JSON reader takes."""
    from taskmix.records import without_nan

    text = json.dumps(without_nan(value), indent=indent, ensure_ascii=False)
    typer.echo("\n".join(map(_escaped, text.split("\n"))))


def _escaped(line: str) -> str:
    """The same JSON without what a terminal would not show: such characters are in strings only."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def show(table: Table, *, wide: bool = False) -> None:
    """Draws a table on standard output; `wide` ones get room where it is no terminal that folds."""
    console = make_console()
    if wide and not console.is_terminal:
        console = make_console(width=160)
    console.print(table)


def make_console(**options: Any) -> Console:
    """A console for which brackets and colons in a word are what they are."""
    from rich.console import Console
    from rich.text import Text

    class Plain(Console):
        def render_str(self, text: str, **how: Any) -> Text:  # cells, titles and headers alike
            return super().render_str(printable(text), **how)

    return Plain(markup=False, emoji=False, **options)


@contextmanager
def one_run_bar(
    run: Run, names: Sequence[str], *, quiet: bool
) -> Iterator[Callable[[Event], None]]:
    """A bar with steps a second, time left and each task's latest loss."""
    from taskmix.training import StepEvent

    latest = [float("nan")] * len(names)
    with _bar(quiet) as bar:
        job = bar.add_task(run.label, total=run.steps, detail="")

        def listen(event: Event) -> None:
            if not isinstance(event, StepEvent):
                return
            for task, loss in zip(event.tasks, event.losses, strict=True):
                latest[task] = loss
            # Making the text costs more than a small model's step; the bar draws ten times a second.
            if event.step % 10 == 0 or event.step in (1, run.steps):
                bar.update(job, completed=event.step, detail=_losses_text(names, latest))

        yield listen


@contextmanager
def many_runs_bar(
    runs: Sequence[Run], *, quiet: bool, title: str
) -> Iterator[Callable[[Progress], None]]:
    """One bar over the steps of all runs, and how many runs are done."""
    steps, total = [0] * len(runs), 0
    finished: set[int] = set()
    with _bar(quiet) as bar:
        job = bar.add_task(title, total=sum(run.steps for run in runs), detail="")

        def tell(progress: Progress) -> None:
            nonlocal total
            total += progress.step - steps[progress.run]
            steps[progress.run] = progress.step
            if progress.done:
                finished.add(progress.run)
            bar.update(job, completed=total, detail=f"{len(finished)} of {len(runs)} runs")

        yield tell


@contextmanager
def counting_bar(title: str, *, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """How many runs are done and how many steps were taken, where the total is not known before."""
    steps: dict[int, int] = {}
    before = total = finished = 0
    with _bar(quiet) as bar:
        job = bar.add_task(title, total=None, detail="")

        def tell(progress: Progress) -> None:
            nonlocal before, total, finished
            if progress.step < steps.get(progress.run, 0):  # a second batch of runs has begun
                before, total = before + total, 0
                steps.clear()
            total += progress.step - steps.get(progress.run, 0)
            steps[progress.run] = progress.step
            finished += progress.done
            bar.update(job, completed=before + total, detail=f"{finished} runs done")

        yield tell


@contextmanager
def iteration_bar(total: int, *, quiet: bool) -> Iterator[Callable[[int, float], None]]:
    """Iterations of EM and the bound they have reached."""
    with _bar(quiet) as bar:
        job = bar.add_task("EM", total=total, detail="")

        def tell(iteration: int, bound: float) -> None:
            bar.update(job, completed=iteration, detail=f"bound {bound:,.1f}")

        yield tell


def _bar(quiet: bool) -> Bar:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Title(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(printable(task.description))

    class Detail(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(printable(task.fields["detail"]), style="dim")

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if not task.speed else f"{task.speed:,.0f} steps/s")

    console = make_console(stderr=True)
    return Bar(
        Title(),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        Speed(),
        TimeRemainingColumn(compact=True),
        Detail(),
        console=console,
        transient=False,
        disable=quiet or not console.is_terminal,  # a file would get the last state alone
    )


def _losses_text(names: Sequence[str], losses: Sequence[float]) -> str:
    shown = [f"{name} {loss:.3f}" for name, loss in zip(names, losses, strict=True) if loss == loss]
    if len(shown) > 5:
        known = [loss for loss in losses if loss == loss]
        return f"mean loss {sum(known) / len(known):.3f} over {len(known)} tasks"
    return "  ".join(shown)
