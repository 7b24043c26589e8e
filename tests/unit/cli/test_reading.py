"""Commands say how they read tasks; those of other files of tests are looked at there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .running import run_cli

TABLES = "Read all 5 tasks: table of 2 columns; 2 classes of `label`; accuracy"


def test_training_begins_with_one_line_for_tasks_that_were_read_alike(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["train", tables, "--out", tmp_path / "study", "--steps", "5"]
    assert run_cli(monkeypatch, *given) == 0
    assert TABLES in capsys.readouterr().out
    assert run_cli(monkeypatch, *given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (reading,) = found["readings"]
    assert reading["tasks"] == ["a", "b", "c", "d", "e"]
    assert (reading["label"], reading["classes"], reading["columns"]) == ("label", 2, ["x", "y"])


def test_simulated_tasks_begin_with_the_reading_of_the_real_one(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--real", "a", "--count", "1", "--alpha", "0.9", "--out", tmp_path / "made")
    assert run_cli(monkeypatch, "simulate", tables, *words) == 0
    assert "Read a: table of 2 columns; 2 classes of `label`; accuracy" in capsys.readouterr().out


def test_predictions_say_what_was_read_beside_the_answers(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = tmp_path / "model"
    words = ("--steps", "5", "--out", tmp_path / "study", "--keep", model)
    assert run_cli(monkeypatch, "train", tables, *words) == 0
    capsys.readouterr()
    (tmp_path / "new.csv").write_text("x,y\n1,2\nn/k,3\n")
    given = ("predict", model, tmp_path / "new.csv", "--task", "a")
    assert run_cli(monkeypatch, *given) == 0
    said = capsys.readouterr()
    assert len([json.loads(line) for line in said.out.splitlines()]) == 2
    assert "Read 2 rows for a: table of 2 columns; 2 classes; accuracy" in said.err
    assert "Note: The column `x` has 1 numbers and 1 other cell, counted as missing" in said.err
    assert run_cli(monkeypatch, *given, "--strict") == 2
    assert "'n/k'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "advise", "transfer", "simulate"])
def test_strict_reading_is_an_option_of_every_command_that_loads_tables(
    command: str,
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tables / "b" / "test.csv"
    path.write_text(path.read_text() + "n/k,1,0\n")
    words: dict[str, list[str]] = {
        "transfer": ["--target", "a"],
        "simulate": ["--real", "b", "--alpha", "0.9"],
    }
    out = ("--out", tmp_path / "out", *words.get(command, []))
    assert run_cli(monkeypatch, command, tables, *out, "--strict") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "'n/k'" in said
    assert "row 8" in said


def test_a_metric_can_be_named_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{number % 10},{'yes' if number < 6 else 'no'}" for number in range(100)]
    folder = tmp_path / "rare"
    folder.mkdir()
    for split in ("train", "dev"):
        (folder / f"{split}.csv").write_text("\n".join(["x,label", *rows]))
    for words, metric in (([], "auc"), (["--metric", "average_precision"], "average_precision")):
        out = ["--steps", "2", "--out", tmp_path / metric]
        assert run_cli(monkeypatch, "train", folder, *words, *out) == 0
        shown = capsys.readouterr().out
        assert f"2 classes of `label`; {metric}" in shown
        assert ("scored by auc, since a constant answer has accuracy 0.94" in shown) == (not words)
