from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

from taskmix.cli._printing._repeat import commands_of_advice


def test_the_line_to_train_has_the_options_that_advise_was_given_and_train_knows() -> None:
    app = typer.Typer()
    found: dict[str, str] = {}

    @app.command()
    def advise(
        context: typer.Context,
        folder: str,
        budget: Annotated[str, typer.Option("--budget")] = "10m",
        model: Annotated[str, typer.Option("--model")] = "auto",
        label: Annotated[list[str] | None, typer.Option("--label")] = None,
        batch_size: Annotated[int, typer.Option("--batch-size")] = 32,
    ) -> None:
        made = commands_of_advice(context, folder, Path("my advice"), 400, tuning="heads")
        found.update(made)

    words = ["a folder", "--budget", "1m", "--label", "a", "--label", "b c", "--batch-size", "32"]
    assert CliRunner().invoke(app, words).exit_code == 0
    train = shlex.split(found["Train by the plan"])
    assert train[:3] == ["taskmix", "train", "a folder"]
    assert train[3:7] == ["--plan", "my advice/plan.json", "--steps", "400"]
    # On another device something else would be tuned, so what was is said.
    given = ["--label", "a", "--label", "b c", "--batch-size", "32", "--tune", "heads"]
    assert train[7:] == given
    assert found["Make this page again"] == "taskmix report 'my advice'"
