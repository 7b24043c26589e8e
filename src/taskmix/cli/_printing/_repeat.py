"""The lines to type that repeat what a command did, or go on from it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

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
    "label",
    "text",
    "metric",
    "batch_size",
    "learning_rate",
    "device",
    "cache",
)


def this_command() -> str:
    """The command as it was typed."""
    return shlex.join(["taskmix", *sys.argv[1:]])


def commands_of_advice(
    context: typer.Context, folder: str, out: Path, batches: int, *, tuning: str | None
) -> dict[str, str]:
    """What each line is for, and the line, in the order in which one would want them.

    `tuning` is what was trained of a pretrained model: on another device another would be usual.
    """
    from taskmix.adviser import ASK_AGAIN

    plan = str(out / "plan.json")
    train = ["taskmix", "train", folder, "--plan", plan, "--steps", str(batches), *_given(context)]
    train += [] if tuning is None else ["--tune", tuning]
    return {
        "Train by the plan": shlex.join(train),
        ASK_AGAIN: this_command(),
        "Make this page again": shlex.join(["taskmix", "report", str(out)]),
    }


def _given(context: typer.Context) -> Iterator[str]:
    """The shared options that were given on the command line, as words."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in _SHARED and source is not None and source.name == "COMMANDLINE":
            value = context.params[name]
            for each in value if isinstance(value, list | tuple) else (value,):
                yield from (parameter.opts[0], str(each))
