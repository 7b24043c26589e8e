"""Every command that loads tasks says how it read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .running import run_cli

TABLES = "Read all 5 tasks: table of 2 columns; 2 classes of `label`; accuracy"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train", ["--steps", "5"]),
        ("transfer", ["--target", "a", "--steps", "5", "--subsets", "12", "--alone", "2"]),
    ],
)
def test_a_command_prints_one_line_for_tasks_that_were_read_alike(
    command: str,
    words: list[str],
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [command, tables, "--out", tmp_path / "study", *words]
    assert run_cli(monkeypatch, *given) == 0
    assert TABLES in capsys.readouterr().out
    assert run_cli(monkeypatch, *given, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (reading,) = found["readings"]
    assert reading["tasks"] == ["a", "b", "c", "d", "e"]
    assert (reading["label"], reading["classes"], reading["columns"]) == ("label", 2, ["x", "y"])


def test_advice_begins_with_the_reading(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--budget", "200-steps", "--steps", "5", "--out", tmp_path / "study", "--workers", "1")
    assert run_cli(monkeypatch, "advise", tables, *words) == 0
    assert capsys.readouterr().out.startswith(TABLES)


def test_simulated_tasks_begin_with_the_reading_of_the_real_one(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--real", "a", "--tasks", "1", "--alpha", "0.9", "--out", tmp_path / "made")
    assert run_cli(monkeypatch, "simulate", tables, *words) == 0
    assert "Read a: table of 2 columns; 2 classes of `label`; accuracy" in capsys.readouterr().out


def test_sequences_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "users.txt").write_text("u1 ls cd ls\nu2 vi ls vi\n" * 10)
    words = ("--first-is-task", "--generators", "1", "--iterations", "2", "--no-baselines")
    out = ("--out", tmp_path / "out")
    assert run_cli(monkeypatch, "sequences", tmp_path / "users.txt", *words, *out) == 0
    assert "Read all 2 tasks: sequences `symbols`; sequences; log_loss; divided 80/10/10" in (
        capsys.readouterr().out
    )


def test_laws_name_the_target_and_the_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{n},{2 * n + 1 + (n % 3) / 100}" for n in range(1, 30)]
    (tmp_path / "t.csv").write_text("\n".join(["n,loss", *rows]))
    words = ("--target", "loss", "--inputs", "n")
    assert run_cli(monkeypatch, "laws", tmp_path / "t.csv", *words) == 0
    assert "Read t.csv: target `loss`, inputs `n`; 29 rows, none left out." in (
        capsys.readouterr().out
    )


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
