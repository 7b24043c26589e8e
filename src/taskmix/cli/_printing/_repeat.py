"""The lines to type that repeat what a command did, or go on from it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from taskmix.engine import Run

# What `advise` and `train` understand alike: the tasks, the model and how it is trained.
_SHARED = (
    "model",
    "vectors",
    "max_length",
    "rank",
    "adapter",
    "tasks",
    "only",
    "task_column",
    "split_column",
    "label",
    "text",
    "features",
    "ignore",
    "kind",
    "separator",
    "metric",
    "strict",
    "cache",
)


def this_command() -> str:
    """The command as it was typed."""
    return shlex.join(["taskmix", *sys.argv[1:]])


def commands_of_advice(
    context: typer.Context, folder: str, out: Path, template: Run, batches: int
) -> dict[str, str]:
    """What each line is for, and the line, in the order in which one would want them.

    The line that trains has every setting that `train` would otherwise choose by itself, but for the
    device: on another one another tuning would be usual.
    """
    from taskmix.adviser import ASK_AGAIN, TRAIN

    plan = str(out / "plan.json")
    train = [
        "taskmix",
        "train",
        folder,
        "--plan",
        plan,
        "--steps",
        str(batches),
        *given_options(context),
    ]
    train += ["--batch-size", str(template.batch_size), *settings_as_options(template)]
    train += [] if template.precision == "float32" else ["--precision", template.precision]
    train += [] if template.seed == 0 else ["--seed", str(template.seed)]
    return {
        TRAIN: shlex.join(train),
        ASK_AGAIN: this_command(),
        "Make this page again": shlex.join(["taskmix", "report", str(out)]),
    }


def settings_as_options(run: Run) -> list[str]:
    """The learning rate and the tuning, as `train` takes them."""
    from taskmix.models import tuning_of

    tuning = tuning_of(run.architecture)
    rate = ["--learning-rate", str(run.optimization.learning_rate)]
    return rate if tuning is None else [*rate, "--tune", tuning]


def given_options(context: typer.Context, names: Collection[str] = _SHARED) -> Iterator[str]:
    """The shared options that were given on the command line, as words."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in names and source is not None and source.name == "COMMANDLINE":
            value = context.params[name]
            if value is True:
                yield parameter.opts[0]
                continue
            for each in value if isinstance(value, list | tuple) else (value,):
                yield from (parameter.opts[0], str(each))
