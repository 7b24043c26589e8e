"""`taskmix demo`: the adviser on eight tasks of which the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taskmix.cli._options import (
    ModelOptions,
    TaskOptions,
    TrackingOptions,
    WhereOptions,
    WorkersOption,
)
from taskmix.cli._printing._display import echo

# Steps, so that everyone sees the same answer: with all that comes before and after, half a minute of
# one core.
BUDGET = "30000-steps"


def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", help="The study to write.")] = Path("taskmix-demo"),
    budget: Annotated[
        str, typer.Option("--budget", help="A time (60s, 5m) or batches (30000-steps).")
    ] = BUDGET,
    seed: Annotated[int, typer.Option("--seed", help="The first of the seeds.")] = 0,
    workers: WorkersOption = None,
    json_: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Ask for advice on eight small tasks, two of which are known to be worth nothing.

    The tasks are made from the digits that come with scikit-learn; two of them have shuffled labels.
    The adviser is not told, and should find it out: `taskmix advise digits`. Nothing is downloaded.
    Run it again: it is done already.

    Example: taskmix demo --out taskmix-demo
    """
    from taskmix.cli._commands._advise import advise_command

    if not json_:
        echo(
            "Eight tasks from handwritten digits. The two named `shuffled…` have random labels; the "
            "adviser is not told."
        )
    advise_command(
        context,
        TaskOptions(folder="digits"),
        ModelOptions(),
        WhereOptions(workers=workers),
        TrackingOptions(),
        out=out,
        budget=budget,
        seed=seed,
        json_=json_,
    )
