"""What people see: progress on standard error, tables on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from taskmix.engine import Progress, Run
    from taskmix.training import Event


def print_json(value: Any) -> None:
    """One object on standard output; NaN is written as null, which every JSON reader takes."""
    import typer

    from taskmix.records import without_nan

    typer.echo(json.dumps(without_nan(value), indent=2, ensure_ascii=False))


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
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if not task.speed else f"{task.speed:,.0f} steps/s")

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        Speed(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[detail]}", style="dim"),
        console=Console(stderr=True, quiet=quiet),
        transient=False,
    )


def _losses_text(names: Sequence[str], losses: Sequence[float]) -> str:
    shown = [f"{name} {loss:.3f}" for name, loss in zip(names, losses, strict=True) if loss == loss]
    if len(shown) > 5:
        known = [loss for loss in losses if loss == loss]
        return f"mean loss {sum(known) / len(known):.3f} over {len(known)} tasks"
    return "  ".join(shown)
