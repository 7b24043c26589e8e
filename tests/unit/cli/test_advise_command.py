from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskmix.records import Plan, Study

from .running import run_cli

QUICK = ("--budget", "1500-steps", "--steps", "25", "--workers", "1")


def test_advice_is_a_plan_a_page_and_a_few_lines(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "advice"
    words = ("advise", folder, *QUICK, "--out", out)
    assert run_cli(monkeypatch, *words) == 0
    shown = capsys.readouterr().out
    for part in (
        "Looking at 2 tasks",
        "way of training",
        "uniform",
        "The plan:",
        "has only 40 rows",
    ):
        assert part in shown
    plan = Plan.load(out / "plan.json")
    assert set(plan.tasks) <= {"fruit", "tool"}
    assert plan.evidence["batches_spent"] <= 1500
    assert (out / "report.html").exists()

    trained = len(list(Study(out).runs()))
    assert run_cli(monkeypatch, *words, "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["chosen"] == plan.evidence["candidate"]
    assert Plan.load(out / "plan.json") == plan
    assert len(list(Study(out).runs())) == trained, "asking twice costs once"

    words = ("train", folder, "--plan", out / "plan.json", "--steps", "10", "--out", tmp_path / "s")
    assert run_cli(monkeypatch, *words, "--json") == 0
    assert len(list(Study(tmp_path / "s").runs())) == max(len(plan.groups), 1)


def test_one_target_among_tables(
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("advise", tables, "--target", "a", *QUICK, "--out", tmp_path / "advice", "--json")
    assert run_cli(monkeypatch, *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["task"] for each in found["expected"]] == ["a"]
    assert {each["name"] for each in found["candidates"]} >= {"single", "uniform"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "soon"), "A budget should be a time"),
        (("--target", "nowhere"), "should be one of the tasks"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    words: tuple[str, ...],
    said: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "advice"
    assert run_cli(monkeypatch, "advise", folder, *words, "--out", out) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
