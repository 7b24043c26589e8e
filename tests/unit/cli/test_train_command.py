from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from taskmix.records import Study

from .running import Program


def test_a_folder_without_tasks_and_a_study_without_runs_are_told_apart(
    tmp_path: Path, cli: Program
) -> None:
    (tmp_path / "empty").mkdir()
    assert cli("train", tmp_path / "empty") == 2
    assert "Found no run there" in cli.refused("report", tmp_path / "empty")


def test_a_signal_stops_cleanly_and_the_same_command_goes_on(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    command = [sys.executable, "-m", "taskmix", "train", str(folder), "--out", str(out)]
    command += ["--steps", "300", "--checkpoint-every", "20", "--evaluate-every", "150"]
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
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert error.endswith("taskmix: stopped. Run the same command again to continue.\n")
    (summary,) = Study(out).summaries()
    assert summary.status == "stopped"
    assert 0 < summary.step < 300

    again = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    (summary,) = Study(out).summaries()
    assert (summary.status, summary.step) == ("finished", 300)
