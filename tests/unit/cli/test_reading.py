"""Commands say how they read tasks; those of other files of tests are looked at there."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from .running import Program

TABLES = "Read all 5 tasks: table of 2 columns; 2 classes of `label`; accuracy"


def test_predictions_say_what_was_read_beside_the_answers(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    model = tmp_path / "model"
    words = ("--steps", "5", "--out", tmp_path / "study", "--keep", model)
    assert cli("train", tables, *words) == 0
    cli.said()
    (tmp_path / "new.csv").write_text("x,y\n1,2\nn/k,3\n")
    given = ("predict", model, tmp_path / "new.csv", "--task", "a")
    assert cli(*given) == 0
    said = cli.said()
    assert len([json.loads(line) for line in said.out.splitlines()]) == 2
    assert "Read 2 rows for a: table of 2 columns; 2 classes; accuracy" in said.err
    assert "Note: The column `x` has 1 numbers and 1 other cell, counted as missing" in said.err
    assert "'n/k'" in cli.refused(*given, "--strict")


@pytest.mark.parametrize("command", ["train", "advise", "transfer"])
def test_strict_reading_is_an_option_of_every_command_that_loads_tables(
    command: str, tables: Path, tmp_path: Path, cli: Program
) -> None:
    path = tables / "b" / "test.csv"
    path.write_text(path.read_text() + "n/k,1,0\n")
    words: dict[str, list[str]] = {"transfer": ["--target", "a"]}
    out = ("--out", tmp_path / "out", *words.get(command, []))
    said = cli.refused(command, tables, *out, "--strict")
    assert "'n/k'" in said
    assert "line 8" in said


def test_training_opens_every_file_of_the_tasks_once(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    opened: Counter[str] = Counter()
    hears = [True]

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if hears and event == "open" and str(arguments[0]).startswith(str(tables)):
            opened[str(arguments[0])] += 1

    sys.addaudithook(hear)  # it stays for good, and hears nothing after this test
    try:
        words = ("--steps", "5", "--workers", "1", "--out", tmp_path / "study")
        assert cli("train", tables, *words) == 0
    finally:
        hears.clear()
    assert set(opened.values()) == {1}
    assert len(opened) == 15


def test_tasks_that_have_changed_since_an_earlier_call_are_read_anew(tables: Path) -> None:
    from taskmix.engine import FolderSource, Run, load_for_runs
    from taskmix.models import Perceptron

    source = FolderSource(path=str(tables))
    run = Run(label="a", source=source, architecture=Perceptron(), steps=1, seed=0)
    assert run.load()["a"].sizes["test"] == 6
    with (tables / "a" / "test.csv").open("a") as file:
        file.write("1,1,0\n")
    assert load_for_runs(source)["a"].sizes["test"] == 7
    assert run.load()["a"].sizes["test"] == 7
