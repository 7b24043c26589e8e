from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from taskmix.engine import load_model, working_alone
from taskmix.plans import Plan
from taskmix.records import Study

from .running import Program

SCHEMA = Path(__file__).parents[3] / "docs" / "plan.schema.json"
QUICK = ("--budget", "1500-steps", "--steps", "25", "--workers", "1")


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
    for part in (
        "Read all 2 tasks: text `text`; 2 classes of `label`; accuracy\n",
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

    words = ("train", folder, "--plan", out / "plan.json", "--steps", "10", "--out", tmp_path / "s")
    assert cli(*words, "--json") == 0
    assert len(list(Study(tmp_path / "s").runs())) == len(plan.parts)
    compared = json.loads(cli.said().out)["comparison"]
    assert {row["task"] for row in compared["rows"]} == set(plan.targets)
    assert "another training: it was trained for 10 batches" in compared["lines"][1]


def test_one_target_among_tables(tables: Path, tmp_path: Path, cli: Program) -> None:
    words = ("advise", tables, "--target", "a", *QUICK, "--out", tmp_path / "advice", "--json")
    found = cli.json(*words)
    assert [each["task"] for each in found["expected"]] == ["a"]
    assert {each["name"] for each in found["candidates"]} >= {"single", "uniform"}


def test_a_second_adviser_on_a_study_says_so_and_trains_nothing(
    tables: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "advice"
    with working_alone(out, "advise"):
        found = cli("advise", tables, "--budget", "900-steps", "--out", out)
    assert found == 1
    assert f"process {os.getpid()}" in cli.said().err
    assert [path.name for path in out.iterdir()] == [".advise.lock"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_stopped_by_a_signal_and_continued_it_gives_the_same_plan(
    tables: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "taskmix", "advise", str(tables), "--budget", "9000-steps"]
    words += ["--steps", "150", "--workers", "1", "--out"]

    def finished(out: Path, wait: float | None) -> bool:
        running = subprocess.Popen(
            [*words, str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert running.stdout is not None
        assert any("Looking at 5 tasks" in line for line in running.stdout)  # after how it was read
        try:
            _, said = running.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            _, said = running.communicate()
        if running.returncode != 0:
            assert running.returncode == 130, said
            assert "Run the same command again to continue." in said
            assert "Traceback" not in said
        return running.returncode == 0

    assert finished(tmp_path / "whole", None)
    wait = float(np.random.default_rng().uniform(0.5, 1.5))  # any moment will do
    while not finished(tmp_path / "parts", wait):
        wait *= 1.6
    whole, parts = (Plan.load(tmp_path / each / "plan.json") for each in ("whole", "parts"))
    assert whole == parts
