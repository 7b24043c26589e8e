"""What people see: progress on standard error, tables on standard output.

Everything a command prints goes through this file, which makes names safe to show: they come from files
and may have anything in them.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import typer

from taskmix.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.table import Table

    from taskmix.engine import Progress, Run


_ARGUMENT = re.compile(r'`(?P<name>[a-z][a-z_]*)=(?:"(?P<value>[^"`]+)"|\.\.\.)`')
_PATIENCE = 2.0  # seconds before a bar is drawn for what is often done at once


def echo(words: str, *, err: bool = False) -> None:
    """One line on standard output, or on standard error."""
    typer.echo(printable(words), err=err)


def note(words: str) -> None:
    """What should be known and changes nothing, on standard error: JSON may be on the other."""
    echo(f"Note: {words}", err=True)


def say_flags_of(note: str) -> str:
    """A note of the loader with flags where it names arguments of a call.

    What has `=` behind it in backticks is one: `label="stars"` is `--label stars` here.
    """

    def flag(found: re.Match[str]) -> str:
        value = "..." if found["value"] is None else shlex.quote(found["value"])
        return f"`--{found['name'].replace('_', '-')} {value}`"

    return _ARGUMENT.sub(flag, note)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """One object on standard output; NaN is written as null, which every JSON reader takes."""
    from taskmix.records import to_plain

    text = json.dumps(to_plain(value), indent=indent, ensure_ascii=False)
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


def draw_table(
    columns: Iterable[str],
    rows: Iterable[Sequence[str] | None],  # None is a line between them
    *,
    title: str | None = None,
    left: Collection[str] = (),  # columns of words; the first is one
    whole: bool = False,  # numbers are not folded where there is little room
    wide: bool = False,
) -> None:
    """Draws rows of words on standard output; numbers stand to the right."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for place, name in enumerate(columns):
        if place == 0 or name in left:
            table.add_column(name)
        else:
            table.add_column(name, justify="right", no_wrap=whole)
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*row)
    show(table, wide=wide)


def make_console(**options: Any) -> Console:
    """A console for which brackets and colons in a word are what they are."""
    from rich.console import Console
    from rich.text import Text

    class Plain(Console):
        def render_str(self, text: str, **how: Any) -> Text:  # cells, titles and headers alike
            return super().render_str(printable(text), **how)

    return Plain(markup=False, emoji=False, **options)


@contextmanager
def runs_bar(
    runs: Sequence[Run], *, quiet: bool, title: str
) -> Iterator[Callable[[Progress], None]]:
    """One bar over the steps of all runs: how many are done, or of a single one its tasks' losses."""
    steps, total = [0] * len(runs), 0
    finished: set[int] = set()
    names = runs[0].load().names if len(runs) == 1 else ()
    with _bar(quiet) as bar:
        job = bar.add_task(title, total=sum(run.steps for run in runs), detail="")

        def tell(progress: Progress) -> None:
            nonlocal total
            total += progress.step - steps[progress.run]
            steps[progress.run] = progress.step
            if progress.done:
                finished.add(progress.run)
            detail = f"{len(finished)} of {len(runs)} runs"
            if names and progress.losses:
                detail = _losses_text(names, progress.losses)
            bar.update(job, completed=total, detail=detail)

        yield tell


@contextmanager
def iteration_bar(total: int, *, quiet: bool) -> Iterator[Callable[[int, float], None]]:
    """Iterations of EM and the bound they have reached."""
    with _bar(quiet) as bar:
        job = bar.add_task("EM", total=total, detail="")

        def tell(iteration: int, bound: float) -> None:
            bar.update(job, completed=iteration, detail=f"bound {bound:,.1f}")

        yield tell


@contextmanager
def reading_bar(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Texts that a frozen encoder has read, once that has taken some seconds."""
    begin = time.monotonic()
    with ExitStack() as stack:
        bar: Bar | None = None
        job: Any = None

        def tell(done: int, total: int) -> None:
            nonlocal bar, job
            if bar is None and time.monotonic() - begin > _PATIENCE:
                bar = stack.enter_context(_bar(quiet, unit="texts"))
                job = bar.add_task("Reading texts", total=total, detail="")
            if bar is not None:
                bar.update(job, completed=done)

        yield tell


def _bar(quiet: bool, *, unit: str = "steps") -> Bar:
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TimeRemainingColumn
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
            return Text("" if not task.speed else f"{task.speed:,.0f} {unit}/s")

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


def _losses_text(names: Sequence[str], losses: Mapping[int, float]) -> str:
    known = {names[task]: loss for task, loss in sorted(losses.items()) if loss == loss}
    if len(known) > 5:
        return f"mean loss {sum(known.values()) / len(known):.3f} over {len(known)} tasks"
    return "  ".join(f"{name} {loss:.3f}" for name, loss in known.items())
