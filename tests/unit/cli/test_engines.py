from __future__ import annotations

from pathlib import Path

import pytest
import ray

from taskmix.records import Study

from .running import Program


def test_several_processes_for_one_model_have_no_other_engine(
    monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    names = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    for name, value in zip(names, ("2", "0", "0", "127.0.0.1", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert "should train it here" in cli.refused("train", "digits", "--engine", "fleet")


def test_train_on_a_cluster_of_this_machine(tmp_path: Path, cli: Program) -> None:
    words = ["train", "digits", "--steps", "8", "--seeds", "2", "--out", str(tmp_path / "study")]
    words += ["--engine", "ray", "--workers", "1", "--device", "auto", "--json"]
    printed = cli.json(*words)
    assert [run["outcome"] for run in printed["runs"]] == ["finished"] * 2
    assert len(list(Study(tmp_path / "study").runs())) == 2
    assert not ray.is_initialized(), "the cluster ends with the command"
