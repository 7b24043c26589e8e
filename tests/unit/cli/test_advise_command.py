from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from taskmix.engine import load_model, working_alone
from taskmix.plans import Plan
from taskmix.records import Study

from .running import Program

SCHEMA = Path(__file__).parents[3] / "docs" / "plan.schema.json"
QUICK = ("--budget", "300-steps", "--steps", "10", "--workers", "1")


def must_be_of_the_documented_form(plan: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(plan.read_text()))


def test_advice_is_a_plan_a_page_and_a_few_lines(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "advice"
    words = ("advise", folder, *QUICK, "--out", out)
    shown = cli.out(*words)
    assert "has only 40 rows" in shown
    plan = Plan.load(out / "plan.json")
    assert set(plan.tasks) <= {"fruit", "tool"}
    assert plan.evidence["batches_spent"] <= 300
    assert (out / "report.html").exists()
    must_be_of_the_documented_form(out / "plan.json")
    assert "taskmix predict" in shown
    model = load_model(out)
    for name in model.tasks:
        answers = model.predict(folder / name / "test.jsonl", name)
        assert {each["label"] for each in answers} <= {"0", "1"}

    trained = len(list(Study(out).runs()))
    again = cli.json(*words, "--json")
    assert again["chosen"] == plan.name
    assert again["readings"][0]["tasks"] == ["fruit", "tool"]
    assert Plan.load(out / "plan.json") == plan
    assert len(list(Study(out).runs())) == trained, "asking twice costs once"

    words = ("train", folder, "--plan", out / "plan.json", "--steps", "13", "--out", tmp_path / "s")
    assert cli(*words, "--json") == 0
    assert len(list(Study(tmp_path / "s").runs())) == len(plan.parts)
    compared = json.loads(cli.said().out)["comparison"]
    assert {row["task"] for row in compared["rows"]} == set(plan.targets)
    assert "another training: it was trained for 13 batches" in compared["lines"][1]


def test_a_second_adviser_on_a_study_says_so_and_trains_nothing(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "advice"
    with working_alone(out, "advise"):
        found = cli("advise", tables, "--budget", "900-steps", "--out", out)
    assert found == 1
    assert f"process {os.getpid()}" in cli.said().err
    assert [path.name for path in out.iterdir()] == [".advise.lock"]
