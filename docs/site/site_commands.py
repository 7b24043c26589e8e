"""The reference of all commands, from their own `--help`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from taskmix.cli._app import app

WIDTH = 80


def command_page() -> str:
    """Every command with the text its `--help` prints."""
    parts = [
        "# Commands",
        "Exit codes: 0 done, 1 a run failed, 2 the input was wrong, 130 stopped by Ctrl-C or SIGTERM. A "
        "command that was stopped goes on when it is run again.",
    ]
    for name, context in all_commands():
        text = context.command.get_help(context)
        parts += [f"## {name}", f"```text\n{text.strip()}\n```"]
    return "\n\n".join(parts) + "\n"


def all_commands() -> Iterator[tuple[str, Any]]:
    """The name and a context of each command, those within groups too."""
    yield from _under(typer.main.get_command(app), "taskmix", None)


def _under(command: Any, name: str, parent: Any) -> Iterator[tuple[str, Any]]:
    context = command.context_class(
        command, info_name=name.split()[-1], parent=parent, terminal_width=WIDTH
    )
    yield name, context
    for part in getattr(command, "commands", {}).values():
        yield from _under(part, f"{name} {part.name}", context)
