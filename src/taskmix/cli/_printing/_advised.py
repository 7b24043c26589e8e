"""What `taskmix advise` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskmix.cli._printing._display import echo, show

if TYPE_CHECKING:
    from taskmix.adviser import Advised

_MOST_WARNINGS = 8  # on a terminal; the page has all of them


def print_advised(advised: Advised) -> None:
    """The race as a table, what was noticed, and the answer."""
    from rich.table import Table

    document = advised.document
    table = Table(
        title=f"Mean dev score of {len(document.judged)} tasks, how far behind the first, and what a "
        "seed costs"
    )
    header, *rows = advised.table()
    for name in header:
        table.add_column(name, justify="left" if name == header[0] else "right")
    for row in rows:
        table.add_row(*row)
    show(table, wide=True)
    warnings = list(document.warnings)
    more = len(warnings) - _MOST_WARNINGS
    if more > 0:
        warnings[_MOST_WARNINGS:] = [f"{more} more such findings are in the page."]
    for words in (*warnings, *document.notes):
        echo(f"Note: {words}")
    for line in document.lines:
        echo(line)


def print_places(advised: Advised) -> None:
    """Where plan, page and model are, and how to go on."""
    from taskmix.adviser import MODEL, TRAIN

    folder = advised.study.path
    page, model = folder / "report.html", folder / MODEL
    evidence = f" The page with the evidence: {page}" if page.exists() else ""
    echo(f"The plan: {folder / 'plan.json'}.{evidence}")
    echo(f"The model: {model}. Its answers: taskmix predict {model} INPUT --task TASK")
    echo(f"Train by it: {advised.document.commands[TRAIN]}")
    echo(f"The same in Python: taskmix plan show {folder / 'plan.json'}")
