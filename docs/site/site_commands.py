"""A page for every command, made of its own `--help`, and a list of them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from taskmix.cli._app import app

OWN = "Options of this command"
# Options that several commands share, by what they are about. All others are a command's own.
GROUPS = {
    "Reading the tasks": "--tasks --only --task-column --label --text --strict --cache",
    "The model": "--model --encoder --vectors --max-length --hidden --shared-layers --task-layers",
    "Training": "--steps --epochs --batch-size --optimizer --learning-rate --weight-decay --schedule "
    "--warmup --clip-norm --precision --evaluate-every --checkpoint-every --patience",
    "Running it": "--seed --seeds --device --workers --engine --address --store --resume --fresh",
    "What it writes": "--out --keep --write-plan --page --answers --document --plot --table --json "
    "--overwrite --tensorboard --mlflow --wandb",
}
EXIT_CODES = (
    "Exit codes: 0 done, 1 a run failed, 2 the input was wrong, 130 stopped by Ctrl-C or SIGTERM. Run a "
    "command that was stopped again, and it continues."
)


def command_pages() -> Iterator[tuple[str, str]]:
    """Path and text of every command's page, and of the list."""
    commands = list(all_commands())[1:]  # the first is the program itself
    for name, context in commands:
        yield path_of(name), _page(name, context)
    rows = "\n".join(
        f"| [`{name}`]({path_of(name).removeprefix('commands/')}) | {_sentence(context)} |"
        for name, context in commands
    )
    start = "`taskmix COMMAND --help` prints the same as these pages. Start with `taskmix demo`."
    table = f"| command | what it does |\n|---|---|\n{rows}"
    yield "commands/index.md", f"# Commands\n\n{start}\n\n{table}\n\n{EXIT_CODES}\n"


def path_of(name: str) -> str:
    """Where the page of a command is: `taskmix laws simulate` is at `commands/laws-simulate.md`."""
    return f"commands/{'-'.join(name.split()[1:])}.md"


def all_commands() -> Iterator[tuple[str, Any]]:
    """The name and a context of each command, those within groups too."""
    yield from _under(typer.main.get_command(app), "taskmix", None)


def _under(command: Any, name: str, parent: Any) -> Iterator[tuple[str, Any]]:
    context = command.context_class(command, info_name=name.split()[-1], parent=parent)
    yield name, context
    for part in getattr(command, "commands", {}).values():
        yield from _under(part, f"{name} {part.name}", context)


def _page(name: str, context: Any) -> str:
    command = context.command
    usage = f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    parts = [f"# {name}", usage, _words(command.help or "")]
    inside = [f"{name} {part}" for part in getattr(command, "commands", {})]
    if inside:
        parts += ["## Commands", "\n".join(f"- [`{each}`]({_beside(each)})" for each in inside)]
    records = [(each, each.get_help_record(context)) for each in command.params]
    arguments = [text for each, text in records if each.param_type_name == "argument" and text]
    if arguments:
        parts += ["## Arguments", _table("argument", arguments)]
    options: dict[str, list[tuple[str, str]]] = {title: [] for title in (OWN, *GROUPS)}
    for each, text in records:
        if each.param_type_name == "option" and text:
            options[_group(each.opts)].append(text)
    for title, some in options.items():
        if some:
            parts += [f"## {title}", _table("option", some)]
    parts += [f"{EXIT_CODES} [All commands](index.md)."]
    return "\n\n".join(parts) + "\n"


def _group(names: list[str]) -> str:
    for title, members in GROUPS.items():
        if set(names) & set(members.split()):
            return title
    return OWN


def _beside(name: str) -> str:
    return path_of(name).removeprefix("commands/")


def _sentence(context: Any) -> str:
    return str(context.command.get_short_help_str(300))


def _words(text: str) -> str:
    """A command's docstring: paragraphs as they are, the lines to type as one block."""
    blocks = [
        f"```sh\n{block.strip()}\n```" if block.startswith("    ") else block
        for block in text.strip().split("\n\n")
    ]
    return "\n\n".join(blocks).replace("\n```\n\n```sh\n", "\n")


def _table(what: str, records: list[tuple[str, str]]) -> str:
    """What `--help` says at the end of an option in brackets, its default and its range, is a column."""
    lines = [f"| {what} | | default, range |", "|---|---|---|"]
    for names, words in records:
        said, opening, bounds = words.rpartition("  [") if words.endswith("]") else (words, "", "")
        if not opening and words.startswith("[") and words.endswith("]"):
            said, bounds = "", words[1:]
        shown = [said.replace("<", "&lt;"), bounds.removesuffix("]").removeprefix("default: ")]
        lines.append(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{names}`", *shown)) + " |"
        )
    return "\n".join(lines)
