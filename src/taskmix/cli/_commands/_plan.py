"""`taskmix plan`: what a plan says, and how to train by it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taskmix.cli._printing._display import echo, show
from taskmix.errors import InputError

if TYPE_CHECKING:
    from taskmix.plans import Plan

app = typer.Typer(
    help="Look at a plan. Example: taskmix plan show advice/plan.json",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _plans() -> None:
    pass  # with it `show` is a word of its own, though it is the only one


@app.command("show")
def plan_show(
    plan: Annotated[Path, typer.Argument(help="A plan.json, of advise, improve or transfer.")],
    python: Annotated[
        bool, typer.Option("--python", help="Print only the script that trains by it.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what a plan trains, what it promises, and how to train by it.

    Examples:

        taskmix plan show advice/plan.json

        taskmix plan show advice/plan.json --python > train.py
    """
    from taskmix.adviser import IN_PYTHON, TRAIN
    from taskmix.cli._printing._display import print_json
    from taskmix.plans import Plan, plan_document

    loaded = Plan.load(plan)
    commands = _commands(loaded, plan, TRAIN)
    if python:
        if IN_PYTHON not in commands:
            raise InputError(
                f"`{plan}` should be a plan of `taskmix advise`, which has a script. Found none in it. "
                f"Train with: {commands[TRAIN]}"
            )
        for line in commands[IN_PYTHON].splitlines():
            echo(line)
    elif json_:
        print_json({"plan": str(plan), **plan_document(loaded), "commands": commands})
    else:
        _print_plan(loaded, commands)


def _commands(plan: Plan, path: Path, train: str) -> dict[str, str]:
    """Those that the plan has, or the one that every plan can be trained with."""
    known = plan.evidence.get("commands")
    if isinstance(known, dict) and isinstance(known.get(train), str):
        return {what: line for what, line in known.items() if isinstance(line, str)}
    steps = [] if plan.length is None else ["--steps", str(plan.length.batches)]
    return {train: f"taskmix train FOLDER {shlex.join(['--plan', str(path), *steps])}"}


def _print_plan(plan: Plan, commands: dict[str, str]) -> None:
    from rich import box
    from rich.table import Table

    if plan.words:
        echo(plan.words)
    expected = {each.task: each for each in plan.expected}
    table = Table(title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1))
    names = ("task", "model", "share of batches", *(("promised",) if expected else ()))
    for name in names:
        table.add_column(name, justify="left" if name == "task" else "right")
    for number, part in enumerate(plan.parts, 1):
        for task, share in part.probabilities.items():
            helps = "" if task in part.scored else " (helps)"
            cells = [f"{task}{helps}", str(number), f"{part.share * share:.1%}"]
            if expected:
                item = expected.get(task) if task in part.scored else None
                cells.append(
                    f"{item.metric} {item.value:.3f} ({item.low:.3f} to {item.high:.3f})"
                    if item
                    else ""
                )
            table.add_row(*cells)
    show(table, wide=True)
    if plan.length is not None:
        echo(
            f"Scores are promised for {plan.length.batches:,} batches of {plan.length.batch_size} rows "
            "over all models."
        )
    for what, line in commands.items():
        echo("")
        echo(f"{what}:")
        for each in line.split("\n"):
            echo(each)
