from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskmix.tasks import load_tasks

from .running import run_cli


def test_artificial_tasks_are_written_as_a_folder(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "made"
    words = ["simulate", folder, "--real", "fruit", "--count", "2", "--alpha", "0.6,1.0"]
    assert run_cli(monkeypatch, *words, "--out", out, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["alpha"] for row in told["tasks"]] == [0.6, 1.0]
    assert told["tasks"][1]["ami"] == pytest.approx(1.0)
    assert set(load_tasks(out).names) == {"fruit", "artificial1", "artificial2"}


def test_a_table_of_information_is_printed(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [
        "simulate",
        folder,
        "--real",
        "fruit",
        "--count",
        "1",
        "--ami",
        "0.3",
        "--samples",
        "30",
    ]
    assert run_cli(monkeypatch, *words, "--out", tmp_path / "made") == 0
    shown = capsys.readouterr().out
    assert "Wrote 2 tasks" in shown
    assert run_cli(monkeypatch, *words, "--out", tmp_path / "again", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["tasks"]
    assert row["samples"] == 30
    assert row["ami"] == pytest.approx(0.3, abs=0.05)
    cells = [row["task"], str(row["labels"]), "30", f"{row['alpha']:.4f}", f"{row['ami']:.4f}"]
    assert cells in [line.split() for line in shown.splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        ["--alpha", "0.9"],  # two tasks, and none is named
        ["--real", "fruit"],
        ["--real", "fruit", "--alpha", "much"],
        ["--real", "fruit", "--alpha", "0.9", "--samples", "2.5"],
        ["--real", "other", "--alpha", "0.9"],
        ["--real", "fruit", "--alpha", "0.9", "--samples", "100000"],
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    assert run_cli(monkeypatch, "simulate", folder, "--out", tmp_path / "made", *words) == 2
    assert capsys.readouterr().err.startswith("taskmix: ")
    assert not (tmp_path / "made").exists()


def test_a_rare_class_with_a_task_that_helps_and_one_that_harms_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rare"
    words = ["simulate", "--positives", "0.06", "--real-samples", "300", "--out", out]
    assert run_cli(monkeypatch, *words, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["task"] for row in told["tasks"]] == ["target", "helps", "harms"]
    tasks = load_tasks(out)
    assert tasks["target"].sizes == {"train": 300, "dev": 1000, "test": 1000}
    assert tasks["target"].metric == "auc"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "A task folder, or --positives, should be given"),
        (["--positives", "0.06", "--alpha", "0.5"], "Found --alpha. Leave it out"),
        (["--positives", "1.5"], "should lie between 0 and 1"),
        (["--positives", "0.06", "--real-samples", "3"], "a row of each class"),
    ],
)
def test_a_rare_class_that_cannot_be_drawn_is_refused(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_cli(monkeypatch, "simulate", *words, "--out", tmp_path / "rare") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "rare").exists()
