"""After training by a plan: what was promised beside what came; and the plan itself, shown."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from taskmix.plans import Expected, Length, Part, Plan, Shares, load_comparison

from .running import run_cli

SHARES = Shares.equal(2)
PLAN = Plan(
    parts=(Part(tasks=("fruit", "tool"), scored=("fruit", "tool"), share=1.0, division=SHARES),),
    words="both tasks, equally often",
    length=Length(batches=40, batch_size=32),
    expected=(
        Expected(task="fruit", metric="accuracy", value=0.95, low=0.5, high=1.0),
        Expected(task="tool", metric="accuracy", value=0.1, low=0.05, high=0.2),
    ),
)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return PLAN.save(tmp_path / "plan.json")


def test_what_was_promised_is_shown_beside_what_came_and_kept(
    folder: Path,
    plan: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("train", folder, "--plan", plan, "--steps", "40", "--out", tmp_path / "study")
    assert run_cli(monkeypatch, *words) == 0
    shown = capsys.readouterr().out
    assert "promised, and what came" in " ".join(shown.split())
    assert "1 of 2 tasks are inside their 90 % intervals; better than promised: `tool`." in shown
    assert "So many outside may be chance." in shown
    kept = load_comparison(tmp_path / "study")
    assert kept is not None
    assert [row.inside for row in kept.rows] == [True, False]
    assert {row.split for row in kept.rows} == {"test"}
    assert kept.promised == kept.trained
    assert kept.differences == ()

    assert run_cli(monkeypatch, *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    scores = {
        row["task"]: row["value"] for row in found["rows"] if row["split"] == "test" and row["task"]
    }
    assert {row["task"]: row["found"] for row in found["comparison"]["rows"]} == scores


def test_another_length_and_batch_size_than_promised_are_said(
    folder: Path,
    plan: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("train", folder, "--plan", plan, "--steps", "4", "--batch-size", "8")
    assert run_cli(monkeypatch, *words, "--out", tmp_path / "study", "--json") == 0
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert found["differences"] == [
        "it was trained for 4 batches, fewer than the 40 of the promise",
        "batches had 8 rows, not 32",
    ]
    assert "The promise was for another training" in found["lines"][1]


def test_a_plan_that_promises_nothing_is_compared_with_nothing(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = replace(PLAN, expected=(), length=None).save(tmp_path / "plan.json")
    words = ("train", folder, "--plan", plan, "--steps", "4", "--out", tmp_path / "study")
    assert run_cli(monkeypatch, *words, "--json") == 0
    assert "comparison" not in json.loads(capsys.readouterr().out)
    assert run_cli(monkeypatch, *words) == 0
    assert "promised" not in capsys.readouterr().out
    assert not (tmp_path / "study" / "comparison.json").exists()


def test_somebodys_own_file_is_not_overwritten_and_nothing_is_trained(
    folder: Path,
    plan: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("train", folder, "--steps", "2", "--out", tmp_path / "study", "--json")
    assert run_cli(monkeypatch, *words) == 0
    mine = tmp_path / "study" / "comparison.json"
    mine.write_text("my own notes")
    runs = len(list((tmp_path / "study").iterdir()))
    assert run_cli(monkeypatch, *words, "--plan", plan) == 2
    assert "another file" in capsys.readouterr().err
    assert mine.read_text() == "my own notes"
    assert len(list((tmp_path / "study").iterdir())) == runs


def test_a_plan_is_shown_with_its_promise_and_the_line_that_trains_by_it(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "plan", "show", plan) == 0
    shown = capsys.readouterr().out
    for part in ("both tasks, equally often", "50.0%", "accuracy 0.950 (0.500 to 1.000)"):
        assert part in shown
    line = f"taskmix train FOLDER --plan {plan} --steps 40"
    assert line in shown
    assert run_cli(monkeypatch, "plan", "show", plan, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["commands"] == {"Train by the plan": line}
    assert found["expected"][0]["value"] == 0.95
    assert run_cli(monkeypatch, "plan", "show", plan, "--python") == 2
    assert "which has a script" in capsys.readouterr().err


def test_the_line_and_the_script_of_advice_are_the_run_that_it_promises_scores_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("advise", "digits", "--only", "parity,half", "--budget", "100-steps", "--steps", "50")
    more = ("--batch-size", "16", "--train-steps", "60", "--workers", "1")
    assert run_cli(monkeypatch, *words, *more) == 0
    shown = capsys.readouterr().out
    plan = Plan.load("advice/plan.json")
    line = plan.evidence["commands"]["Train by the plan"]
    assert f"Train by it: {line}\n" in shown
    assert run_cli(monkeypatch, *shlex.split(line)[1:], "--json") == 0
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert found["promised"] == found["trained"] == {"batches": 60, "batch_size": 16}
    assert found["differences"] == []
    assert {row["task"] for row in found["rows"]} == set(plan.targets)
    assert run_cli(monkeypatch, "plan", "show", "advice/plan.json", "--python") == 0
    script = capsys.readouterr().out.replace("Here()", "Here(workers=1)")
    exec(compile(script, "train.py", "exec"), {"__name__": "__main__"})
    assert [each.split()[:2] for each in capsys.readouterr().out.splitlines()] == [
        ["already", "finished"] for _ in plan.parts
    ]
