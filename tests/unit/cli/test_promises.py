"""After training by a plan: what was promised beside what came; and the plan itself, shown."""

from __future__ import annotations

import ast
import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from taskmix.engine import Optimization
from taskmix.models import TextConvolution
from taskmix.plans import Expected, Length, Part, Plan, Shares, load_advice, load_comparison
from taskmix.records import describe

from .running import Program

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
    folder: Path, plan: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("train", folder, "--plan", plan, "--steps", "40", "--out", tmp_path / "study")
    shown = cli.out(*words)
    assert "promised, and what came" in " ".join(shown.split())
    assert "1 of 2 tasks are inside their 90 % intervals; better than promised: `tool`." in shown
    assert "So many outside may be chance." in shown
    kept = load_comparison(tmp_path / "study")
    assert kept is not None
    assert [row.inside for row in kept.rows] == [True, False]
    assert {row.split for row in kept.rows} == {"test"}
    assert kept.promised == kept.trained
    assert kept.differences == ()

    found = cli.json(*words, "--json")
    scores = {
        row["task"]: row["value"] for row in found["rows"] if row["split"] == "test" and row["task"]
    }
    assert {row["task"]: row["found"] for row in found["comparison"]["rows"]} == scores


def test_a_plan_that_promises_nothing_is_compared_with_nothing(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    plan = replace(PLAN, expected=(), length=None).save(tmp_path / "plan.json")
    words = ("train", folder, "--plan", plan, "--steps", "4", "--out", tmp_path / "study")
    assert cli(*words, "--json") == 0
    assert "comparison" not in json.loads(cli.said().out)
    assert "promised" not in cli.out(*words)
    assert not (tmp_path / "study" / "comparison.json").exists()


def test_somebodys_own_file_is_not_overwritten_and_nothing_is_trained(
    folder: Path, plan: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("train", folder, "--steps", "2", "--out", tmp_path / "study", "--json")
    assert cli(*words) == 0
    mine = tmp_path / "study" / "comparison.json"
    mine.write_text("my own notes")
    runs = len(list((tmp_path / "study").iterdir()))
    assert "another file" in cli.refused(*words, "--plan", plan)
    assert mine.read_text() == "my own notes"
    assert len(list((tmp_path / "study").iterdir())) == runs


def test_a_strangers_plan_cannot_say_what_is_to_be_typed(plan: Path, cli: Program) -> None:
    assert "which says what a script needs" in cli.refused("plan", "show", plan, "--python")

    def shown(settings: object, *more: str) -> str:
        commands = {"Train by the plan": "curl evil", "The same in Python": "import evil"}
        evidence = {"commands": commands, "settings": settings}
        replace(Plan.load(plan), evidence=evidence).save(plan)
        assert cli("plan", "show", plan, *more) == 0
        return cli.said().out

    model = describe(TextConvolution(vectors=Path("'); import evil; ('")))
    settings = {"architecture": model, "optimization": describe(Optimization(learning_rate=0.1))}
    script = shown(settings, "--python")
    assert {type(each) for each in ast.walk(ast.parse(script))} & {ast.Import} == set()
    assert "learning_rate=0.1" in script
    assert f"train FOLDER --plan {plan} --steps 40 --batch-size 32 --learning-rate 0.1" in shown(
        settings
    )
    for strange in ("evil", {}, {**settings, "architecture": {"kind": "evil"}}):
        said = shown(strange)
        assert "evil" not in said
        assert "--batch-size 32\n" in said


def test_the_line_and_the_script_of_advice_are_the_run_that_it_promises_scores_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("advise", "digits", "--only", "parity,half", "--budget", "100-steps", "--steps", "50")
    more = ("--batch-size", "16", "--workers", "1")
    shown = cli.out(*words, *more)
    plan, advice = Plan.load("advice/plan.json"), load_advice(Path("advice"))
    assert advice is not None
    commands = advice.commands
    line = commands["Train by the plan"]
    assert f": {line}\n" in shown
    found = cli.json(*shlex.split(line)[1:], "--json")["comparison"]
    assert found["promised"] == found["trained"] == {"batches": 50, "batch_size": 16}
    assert found["differences"] == []
    assert {row["task"] for row in found["rows"]} == set(plan.targets)
    script = commands["The same in Python"].replace("Here()", "Here(workers=1)")
    exec(compile(script, "train.py", "exec"), {"__name__": "__main__"})
    assert [each.split()[:2] for each in cli.said().out.splitlines()] == [
        ["already", "finished"] for _ in plan.parts
    ]
    assert cli("plan", "show", "advice/plan.json", "--python") == 0
    derived = cli.said().out.replace("FolderSource(path='FOLDER')", "digits")
    exact = commands["The same in Python"].replace(
        "DigitsSource(tasks=('parity', 'half'))", "digits"
    )
    assert derived.splitlines()[1:] == exact.splitlines()[1:], "but for where the tasks are"
