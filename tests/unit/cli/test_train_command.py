from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taskmix.records import Study

from .running import Program


def test_training_learns_and_prints_scores_as_json(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "study"
    found = cli.json("train", folder, "--out", out, "--steps", "60", "--json", "--seeds", "1")
    means = {row["split"]: row["value"] for row in found["rows"] if row["task"] is None}
    assert means["test"] > 0.95
    assert [run["outcome"] for run in found["runs"]] == ["finished"]
    assert len(list(Study(out).runs())) == 1


def test_several_seeds_give_intervals_and_several_ways_share_one_study(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "study"
    common = ("--out", out, "--steps", "12", "--workers", "1")
    assert cli("train", folder, *common, "--seeds", "2", "--weighting", "equal") == 0
    assert cli("train", folder, *common, "--seeds", "2", "--single") == 0
    found = cli.json("report", out, "--json")
    assert {row["label"] for row in found["rows"]} == {"equal", "single"}
    assert {row["seeds"] for row in found["rows"]} == {2}
    page = Path(found["page"])
    assert page == out / "report.html"
    assert "<html" in page.read_text()


def test_a_folder_without_tasks_and_a_study_without_runs_are_told_apart(
    tmp_path: Path, cli: Program
) -> None:
    (tmp_path / "empty").mkdir()
    assert cli("train", tmp_path / "empty") == 2
    assert "Found no run there" in cli.refused("report", tmp_path / "empty")


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
