from __future__ import annotations

from pathlib import Path

import pytest

from taskmix.tasks import load_tasks

from .running import Program


def test_artificial_tasks_are_written_as_a_folder(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "made"
    words = ["laws", "simulate", folder, "--real", "fruit", "--count", "2", "--alpha", "0.6,1.0"]
    told = cli.json(*words, "--out", out, "--json")
    assert [row["alpha"] for row in told["tasks"]] == [0.6, 1.0]
    assert told["tasks"][1]["ami"] == pytest.approx(1.0)
    assert set(load_tasks(out).names) == {"fruit", "artificial1", "artificial2"}


def test_a_table_of_information_is_printed(folder: Path, tmp_path: Path, cli: Program) -> None:
    words = ["laws", "simulate", folder, "--real", "fruit", "--count", "1"]
    words += ["--ami", "0.3", "--samples", "30"]
    shown = cli.out(*words, "--out", tmp_path / "made")
    assert "Wrote 2 tasks" in shown
    assert "Read fruit: text `text`; 2 classes of `label`; accuracy" in shown
    (row,) = cli.json(*words, "--out", tmp_path / "again", "--json")["tasks"]
    assert row["samples"] == 30
    assert row["ami"] == pytest.approx(0.3, abs=0.05)
    cells = [row["task"], str(row["labels"]), "30", f"{row['alpha']:.4f}", f"{row['ami']:.4f}"]
    assert cells in [line.split() for line in shown.splitlines()]
