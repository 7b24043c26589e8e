"""What `taskmix mix` prints: the mixture, what it will give, and how far to trust it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskmix.cli._printing._display import echo, say_flags_of, show

if TYPE_CHECKING:
    from rich.table import Table

    from taskmix.mixtures import MixtureLines, MixturesDocument


def print_mixtures(document: MixturesDocument) -> None:
    """Lines and tables on standard output."""
    from taskmix.mixtures import describe_mixtures

    for part in describe_mixtures(document):
        if isinstance(part, str):
            echo(say_flags_of(part))
        else:
            show(_drawn(part), wide=True)


def _drawn(table: MixtureLines) -> Table:
    from rich import box
    from rich.table import Table

    drawn = Table(title=table.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    for place, name in enumerate(table.columns):
        drawn.add_column(name, justify="left" if place == 0 or name == "mixture" else "right")
    for row in table.rows:
        drawn.add_row(*row)
    return drawn
