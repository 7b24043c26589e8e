from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taskmix.records import Study

from .running import run_cli


def test_training_learns_and_prints_scores_as_json(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "study"
    code = run_cli(
        monkeypatch, "train", folder, "--out", out, "--steps", "60", "--json", "--seeds", "1"
    )
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    means = {row["split"]: row["value"] for row in found["rows"] if row["task"] is None}
    assert means["test"] > 0.95
    assert [run["outcome"] for run in found["runs"]] == ["finished"]
    assert len(list(Study(out).runs())) == 1


def test_each_task_can_be_served_by_its_own_best_evaluation(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "study"
    words = ("train", folder, "--out", out, "--steps", "12", "--best", "each", "--json")
    assert run_cli(monkeypatch, *words) == 0
    capsys.readouterr()
    (run,) = Study(out).runs()
    best, scores = run.best(), run.scores().to_pylist()
    assert isinstance(best, dict)
    for name, step in best["each"].items():
        accuracy = {
            row["step"]: row["value"]
            for row in scores
            if row["task"] == name and row["metric"] == "accuracy"
        }
        assert accuracy[step] == max(accuracy.values())


def test_several_seeds_give_intervals_and_several_ways_share_one_study(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "study"
    common = ("--out", out, "--steps", "12", "--workers", "1")
    assert (
        run_cli(monkeypatch, "train", folder, *common, "--seeds", "2", "--weighting", "equal") == 0
    )
    assert run_cli(monkeypatch, "train", folder, *common, "--seeds", "2", "--single") == 0
    capsys.readouterr()
    assert run_cli(monkeypatch, "report", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["label"] for row in found["rows"]} == {"equal", "single"}
    assert {row["seeds"] for row in found["rows"]} == {2}
    page = Path(found["page"])
    assert page == out / "report.html"
    assert "<html" in page.read_text()


def test_the_table_for_people_names_every_task(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
) -> None:
    code = run_cli(monkeypatch, "train", folder, "--out", tmp_path / "study", "--steps", "5")
    assert code == 0
    out = capsys.readouterr().out
    assert "fruit" in out
    assert "tool" in out
    assert "taskmix report" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--policy", "greedy"], "`--policy` should be"),
        (["--policy", "tempered:x"], "followed by a number"),
        (["--policy", "tempered:2,limit=0"], "whole number of rows, 1 or more"),
        (["--policy", "tempered:2,top=9"], "no options but limit"),
        (["--policy", "capped:2.5"], "followed by a whole number"),
        (["--policy", "capped:0"], "whole number of rows, 1 or more"),
        (["--policy", "uniform:3"], "should stand alone"),
        (["--policy", "fixed:0.5,0.3,0.2"], "one number per task"),
        (["--policy", "scheduled:5=0.5,0.5"], "should start at step 0"),
        (["--policy", "exp3s:speed=2"], "no options but eta, epsilon, propensity"),
        (["--policy", "exp3s:epsilon=2"], "`epsilon` should lie above 0"),
        (["--reward", "fame"], "`--reward` should be"),
        (["--reward", "hard/loud"], "Found the mark /loud"),
        (["--reward", "hard", "--weighting", "equal"], "should go with one task a step"),
        (["--plan", "nowhere.json"], "should be a plan"),
        (["--policy", "uniform", "--weighting", "equal"], "Found --policy and --weighting"),
        (["--weighting", "fixed:1,2,3"], "one number for each task"),
        (["--only", "fruit,vegetable"], "vegetable"),
        (["--learning-rate", "-1"], "above 0, or 0 to train nothing"),
        (["--learning-rate", "nan"], "above 0, or 0 to train nothing"),
        (["--clip-norm", "-1"], "largest norm of a gradient"),
        (["--model", "no/such/encoder"], "no/such/encoder"),
        (["--vectors", "nowhere.txt"], "nowhere.txt"),
        (["--device", "toaster"], "a device of PyTorch"),
        (["--model", "bilstm", "--max-length", "9"], "reads whole texts"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_two(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    tmp_path: Path,
    words: list[str],
    sentence: str,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code = run_cli(
        monkeypatch, "train", folder, "--out", tmp_path / "study", "--steps", "3", *words
    )
    error = capsys.readouterr().err
    assert code == 2
    assert sentence in error
    assert "Traceback" not in error


def test_a_folder_without_tasks_and_a_study_without_runs_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert run_cli(monkeypatch, "train", tmp_path / "empty") == 2
    assert run_cli(monkeypatch, "report", tmp_path / "empty") == 2
    assert "Found no run there" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_cleanly_and_the_same_command_goes_on(
    folder: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "study"
    command = [sys.executable, "-m", "taskmix", "train", str(folder), "--out", str(out)]
    command += ["--steps", "800", "--checkpoint-every", "20", "--evaluate-every", "400"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while not list(out.glob("*/checkpoint/latest.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert error.endswith("taskmix: stopped. Run the same command again to continue.\n")
    (summary,) = Study(out).summaries()
    assert summary.status == "stopped"
    assert 0 < summary.step < 800

    again = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    (summary,) = Study(out).summaries()
    assert (summary.status, summary.step) == ("finished", 800)
