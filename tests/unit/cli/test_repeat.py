from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

from taskmix.cli._printing._repeat import commands_of_advice
from taskmix.engine import DigitsSource, Optimization, Run
from taskmix.models import Transformer, tuned


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
        features: Annotated[list[str] | None, typer.Option("--features")] = None,
        ignore: Annotated[list[str] | None, typer.Option("--ignore")] = None,
        kind: Annotated[str | None, typer.Option("--kind")] = None,
        split_column: Annotated[str | None, typer.Option("--split-column")] = None,
        strict: Annotated[bool, typer.Option("--strict")] = False,
        device: Annotated[str, typer.Option("--device")] = "auto",
    ) -> None:
        rate = Optimization(learning_rate=0.00123456789)
        run = Run(
            label="",
            source=DigitsSource(),
            architecture=tuned(Transformer(path="minilm"), "heads"),
            optimization=rate,
            batch_size=16,
            steps=1,
            seed=7,
        )
        found.update(commands_of_advice(context, folder, Path("my advice"), run, 400))

    words = ["a folder", "--budget", "1m", "--label", "a", "--label", "b c", "--strict"]
    columns = ["--features", "x", "--features", "y", "--ignore", "id", "--kind", "regression"]
    columns += ["--split-column", "part"]
    words += ["--device", "cpu", *columns]
    assert CliRunner().invoke(app, words).exit_code == 0
    train = shlex.split(found["Train by the plan"])
    assert train[:3] == ["taskmix", "train", "a folder"]
    assert train[3:7] == ["--plan", "my advice/plan.json", "--steps", "400"]
    assert train[7:22] == ["--label", "a", "--label", "b c", *columns, "--strict"]
    # What `train` would choose by itself is said; on another device something else would be tuned.
    assert train[22:26] == ["--batch-size", "16", "--learning-rate", "0.00123456789"]
    assert train[26:] == ["--tune", "heads", "--seed", "7"]
    assert found["Make this page again"] == "taskmix report 'my advice'"
