"""Studies that a newer taskmix wrote, and runs whose record is not all there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from taskmix.records import Study

from .running import run_cli

QUICK = ("--steps", "12", "--batch-size", "4")


@pytest.fixture
def study(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two finished runs."""
    words = ("--seeds", "2", "--workers", "1", "--out", tmp_path / "study")
    assert run_cli(monkeypatch, "train", folder, *QUICK, *words) == 0
    return tmp_path / "study"


def make_newer(run: Path) -> None:
    text = re.sub(r'"format": 1\b', '"format": 2', (run / "run.json").read_text())
    (run / "run.json").write_text(text)


def test_a_study_of_a_newer_taskmix_is_told_as_such_by_every_command(
    study: Path,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for run in Study(study).runs():
        make_newer(run.path)
    capsys.readouterr()
    for words in (
        ("report", study),
        ("improve", study, "--write-plan", tmp_path / "plan.json"),
        ("train", folder, *QUICK, "--out", study),
        ("train", folder, *QUICK, "--seeds", "2", "--workers", "1", "--out", study),
    ):
        assert run_cli(monkeypatch, *words) == 1, words
        (line,) = capsys.readouterr().err.splitlines()
        assert "Found 2, which a newer taskmix than this one (" in line
        assert "Update it with `pip install --upgrade taskmix`." in line
    assert not (study / "report.html").exists()
    for run in Study(study).runs():
        assert json.loads((run.path / "run.json").read_text())["format"] == 2, "left as it is"


def test_one_run_of_a_newer_taskmix_is_a_note_beside_the_others(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_newer(next(Study(study).runs()).path)
    capsys.readouterr()
    assert run_cli(monkeypatch, "report", study) == 0
    shown = capsys.readouterr()
    assert "about 1 runs" in shown.out
    assert shown.err.startswith("Note: ")
    assert "which a newer taskmix" in shown.err
    assert run_cli(monkeypatch, "improve", study, "--write-plan", tmp_path / "plan.json") == 0
    assert "which a newer taskmix" in capsys.readouterr().out


def test_a_run_without_its_steps_is_told_by_report_and_improve(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = Study(study).runs()
    shutil.rmtree(first.path / "steps")
    capsys.readouterr()
    assert run_cli(monkeypatch, "report", study) == 0
    note = "1 run has no whole record of its steps, so its lines are missing from the plots"
    assert f"{note}: `{first.name}`" in capsys.readouterr().err
    page = (study / "report.html").read_text()
    assert "no whole record of its steps" in page
    assert run_cli(monkeypatch, "improve", study, "--write-plan", tmp_path / "plan.json") == 0
    assert f"Run `{first.name}` (uniform) has no whole record" in capsys.readouterr().out
    assert json.loads((tmp_path / "plan.json").read_text())["evidence"]["runs"] == [second.name]

    shutil.rmtree(second.path / "steps")
    assert run_cli(monkeypatch, "improve", study, "--write-plan", tmp_path / "plan.json") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no whole record of its steps" in line


def test_a_lean_run_has_no_steps_by_design(tmp_path: Path) -> None:
    from taskmix.engine import DigitsSource, Run, execute
    from taskmix.models import Perceptron
    from taskmix.report import gather_report

    run = Run(
        label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=3, seed=0
    )
    execute(run, Study(tmp_path, lean=True))
    (folder,) = Study(tmp_path).runs()
    summary = folder.summary()
    assert summary is not None
    assert summary.lean
    assert not folder.lacks_steps(summary)
    assert gather_report(Study(tmp_path)).notes == ()


def test_a_run_of_two_labels_is_one_run_with_scores_under_both(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in Study(study).runs():
        Study(study).run_named(run.name, label="again").keep_label()
    capsys.readouterr()
    assert run_cli(monkeypatch, "report", study, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 2
    values = {
        label: [row["value"] for row in told["rows"] if row["label"] == label]
        for label in ("uniform", "again")
    }
    assert values["uniform"] == values["again"] != []
    assert "again, uniform" in (study / "report.html").read_text()
