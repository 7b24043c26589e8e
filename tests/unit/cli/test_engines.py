from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import ray

from taskmix.cli._app import app
from taskmix.records import Study

from .running import run_cli

RUNNING = ("train", "transfer", "advise")
REPRODUCING = ("census", "glue", "laws-balanced", "newsgroups", "nlp25", "reviews")


@pytest.mark.parametrize(
    "words", [(name,) for name in RUNNING] + [("reproduce", n) for n in REPRODUCING]
)
def test_every_command_that_runs_many_models_takes_a_cluster(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, *words, "--help") == 0
    said = capsys.readouterr().out
    for option in ("--engine", "--address", "--store", "ray"):
        assert option in said


@pytest.mark.parametrize("option", ["--address", "--store"])
def test_options_of_a_cluster_go_with_it(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "train", "digits", option, "somewhere") == 2
    assert f"`{option}` should go with --engine ray" in capsys.readouterr().err


def test_several_processes_for_one_model_have_no_other_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    for name, value in zip(names, ("2", "0", "0", "127.0.0.1", "1"), strict=True):
        monkeypatch.setenv(name, value)
    assert run_cli(monkeypatch, "train", "digits", "--engine", "fleet") == 2
    assert "should train it here" in capsys.readouterr().err


def test_train_on_a_cluster_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["taskmix"])
    words = ["train", "digits", "--steps", "8", "--seeds", "2", "--out", str(tmp_path / "study")]
    words += ["--engine", "ray", "--workers", "1", "--device", "auto", "--json"]
    app(words, standalone_mode=False)
    printed = json.loads(capsys.readouterr().out)
    assert [run["outcome"] for run in printed["runs"]] == ["finished"] * 2
    assert len(list(Study(tmp_path / "study").runs())) == 2
    assert not ray.is_initialized(), "the cluster ends with the command"
