from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskmix.cli._reproducing._app import app

from .running import run_cli


def test_the_experiments_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "reproduce", "--list", "--json") == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)]
    commands = [each.name or each.callback.__name__ for each in app.registered_commands]
    assert sorted(names) == sorted(commands), (
        "every experiment is listed, and every one listed runs"
    )


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html"])
def test_a_small_bandit_prints_rows_and_draws_the_figure(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    suffix: str,
) -> None:
    figure = tmp_path / f"figure{suffix}"
    words = ("reproduce", "bandit", "--environments", "1", "--seeds", "2", "--steps", "2000")
    assert run_cli(monkeypatch, *words, "--plot", figure, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["experiment"] == "bandit"
    quantities = {row["quantity"] for row in found["rows"]}
    assert {"gap_closed/paper_recipe", "gap_closed/auto", "score/exp3s"} <= quantities
    scores = {row["quantity"]: row["ours"] for row in found["rows"]}
    gained = scores["score/exp3s"] - scores["score/random"]
    assert scores["score_difference/exp3s_minus_random"] == pytest.approx(gained)
    begin = {".svg": b"<svg", ".png": b"\x89PNG\r\n", ".html": b"<!DOCTYPE html>"}[suffix]
    assert figure.read_bytes().startswith(begin)
    assert figure.stat().st_size > 10_000, "the curves of all policies are drawn"


def test_a_figure_of_another_kind_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    figure = tmp_path / "figure.gif"
    words = ("reproduce", "bandit", "--environments", "1", "--seeds", "1", "--steps", "2000")
    assert run_cli(monkeypatch, *words, "--plot", figure) == 2
    assert "ends in .svg, .png or .html" in capsys.readouterr().err
    assert not figure.exists()


@pytest.mark.parametrize("experiment", ["weak-supervision", "nlp25"])
def test_an_encoder_that_is_not_there_is_refused_before_a_study_is_begun(
    experiment: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    words = ("reproduce", experiment, tmp_path, "--encoder", tmp_path / "nothing")
    assert run_cli(monkeypatch, *words, "--out", tmp_path / "study") == 2
    assert "`--encoder` should be a folder with a Hugging Face model" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()
