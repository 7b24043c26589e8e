"""What `taskmix sequences` prints: the figures of a mixture, or how a sequence goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskmix.cli._printing._display import echo, print_json, show
from taskmix.cli._printing._reading import reading_document

if TYPE_CHECKING:
    from taskmix.sequences import Continuation, MixtureChoice, MixtureDocument, SequenceStream
    from taskmix.tasks import TaskSet


def print_fit(name: str) -> None:
    """What a fit that begins is for."""
    echo(f"... {name}", err=True)


def print_choice(choice: MixtureChoice) -> None:
    """What was tried, and what the data have asked for."""
    best = choice.best
    for words in choice.words():
        echo(f"    {words}", err=True)
    why = "all tries are spent; raise --tries to try more" if choice.spent else "no more of it pays"
    echo(f"{best.name}: chosen by held-out likelihood of {len(choice.tried)} ({why}).", err=True)


def print_mixture(
    document: MixtureDocument, tasks: TaskSet | None, seconds: float, *, as_json: bool
) -> None:
    """The figures: an object for programs, a table for people."""
    if as_json:
        print_json(document.to_json() | ({} if tasks is None else reading_document(tasks)))
        return
    from rich import box
    from rich.table import Table

    from taskmix.sequences import mixture_table

    size = f"{_count(len(document.theta), 'task')}, {_count(document.generators, 'generator')}"
    own = ", each task with something of its own" if document.own else ""
    echo(f"{size}: {document.kind}{own}. {_count(document.iterations, 'iteration')}.")
    if document.rows:
        figures = mixture_table(document.rows)
        table = Table(title="held-out sequences", title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column(figures.columns[0])
        for name in figures.columns[1:]:
            table.add_column(name, justify="right", no_wrap=True)
        for row in figures.rows:
            table.add_row(*row)
        show(table)
    wrote = "" if document.page is None else f"Wrote {document.page}. "
    echo(f"{wrote}{seconds:.0f} s.")


def print_stream(stream: SequenceStream) -> None:
    """What the first reading has found."""
    symbols = f"{stream.observations:,} symbols, {len(stream.symbols) - 1:,} different ones"
    held = _count(len(stream.held_out.sequences), "sequence")
    aside = _count(len(stream.set_aside()[1]), "sequence")
    echo(
        f"Read {_count(len(stream), 'sequence')} of {_count(len(stream.tasks), 'task')}, {symbols}; "
        f"{held} more are held out to judge by, and {aside} for what tasks have of their own."
    )


def print_continuation(found: Continuation, *, as_json: bool) -> None:
    """The next symbols, a most likely way on, and the generator that is at work."""
    if as_json:
        print_json(found.to_json())
        return
    for symbol, probability in found.next:
        echo(f"{symbol:>12}  {probability:.3f}")
    at_work = max(found.generators)
    echo(
        f"Most likely as a whole: {found.text} (probability {found.probability:.3g}). "
        f"Generator {found.generators.index(at_work) + 1} is at work with probability {at_work:.2f}."
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
