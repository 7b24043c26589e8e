from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from taskmix.plans import Plan, Stages
from taskmix.records import Study

from .running import Program, run_cli

STEPS = 300


@pytest.fixture(scope="module")
def trained(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two uniform runs on two tasks of five words."""
    out = tmp_path_factory.mktemp("trained") / "study"
    words = ("--out", out, "--seeds", "2", "--workers", "1", "--steps", str(STEPS), "--json")
    assert run_cli("train", shared_folder, *words, "--batch-size", "4") == 0
    return out


@pytest.fixture
def logged(trained: Path, tmp_path: Path) -> Path:
    """That study, for one test alone."""
    return Path(shutil.copytree(trained, tmp_path / "study"))


def test_a_plan_is_learned_from_a_study_and_trained_with(
    folder: Path, logged: Path, tmp_path: Path, cli: Program
) -> None:
    path = tmp_path / "plan.json"
    found = cli.json("improve", logged, "--write-plan", path, "--json")
    rows = {row["policy"]: row for row in found["rows"]}
    assert set(rows) == {"as logged", "uniform", "proportional", "tempered:2", "learned"}
    for row in rows.values():
        assert row["low"] <= row["value"] <= row["high"]
        assert 0 < row["effective_rows"] <= 2 * STEPS
    assert rows["as logged"]["gain"] == {"value": 0, "low": 0, "high": 0}
    plan = Plan.load(path)
    assert plan.tasks == ("fruit", "tool")
    assert plan.evidence["entropy"] > 0
    assert (plan.evidence["division"], plan.evidence["rewarded_by"]) == ("both", "logged")
    assert rows["learned"]["ends_above"]["low"] <= rows["learned"]["ends_above"]["high"]
    assert len(plan.evidence["runs"]) == 2

    words = ("train", folder, "--plan", path, "--steps", "40", "--out", tmp_path / "next", "--json")
    assert cli(*words) == 0
    (run,) = Study(tmp_path / "next").runs()
    logged_with = run.probabilities()[0]
    division = plan.parts[0].division
    first = division.stages[0].probabilities if isinstance(division, Stages) else plan.probabilities
    assert logged_with == pytest.approx(first)


def test_stages_of_a_plan_become_steps_of_the_run(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    path = tmp_path / "plan.json"
    stages = [{"begin": 0.0, "shares": [0.9, 0.1]}, {"begin": 0.5, "shares": [0.2, 0.8]}]
    part = {"tasks": ["tool", "fruit"], "share": 1.0, "stages": stages}
    path.write_text(json.dumps({"version": 2, "parts": [part]}))
    words = ("train", folder, "--plan", path, "--steps", "10", "--out", tmp_path / "s", "--json")
    assert cli(*words) == 0
    (run,) = Study(tmp_path / "s").runs()
    by_step = run.probabilities()  # in the order of the folder: fruit, tool
    np.testing.assert_allclose(by_step[:5], [[0.1, 0.9]] * 5)
    np.testing.assert_allclose(by_step[5:], [[0.8, 0.2]] * 5)


def test_a_given_entropy_is_taken_and_the_table_is_for_people(
    logged: Path, tmp_path: Path, cli: Program
) -> None:
    path = tmp_path / "plan.json"
    words = ("improve", logged, "--entropy", "0.2", "--fixed", "--write-plan", path)
    shown = cli.out(*words)
    assert "Weight of the entropy: 0.2. The plan is that policy." in shown
    assert "effective rows" in shown
    assert "By them the learned shares end" in shown
    assert Plan.load(path).probabilities  # one model with fixed shares


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--entropy", "some"], "--entropy"),
        (["--entropy", "-1"], "`--entropy` should be a number of at least zero"),
        (["--runs", "exp3s"], "Found runs labelled uniform"),
        (["--division", "car"], "`--division` should be among both, entropy, curves"),
    ],
)
def test_wrong_options_are_one_sentence_and_write_nothing(
    logged: Path, tmp_path: Path, words: list[str], sentence: str, cli: Program
) -> None:
    path = tmp_path / "plan.json"
    assert sentence in cli.refused("improve", logged, "--write-plan", path, *words)
    assert not path.exists()


def test_runs_with_other_rewards_or_none_are_not_pooled(
    folder: Path, logged: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("train", folder, "--out", logged, "--steps", "30", "--json", "--policy", "exp3s")
    assert cli(*words) == 0
    path = tmp_path / "plan.json"
    assert "should have the same reward" in cli.refused("improve", logged, "--write-plan", path)
    assert "Found no such folder" in cli.refused(
        "improve", tmp_path / "nowhere", "--write-plan", path
    )
    words = ("train", folder, "--out", tmp_path / "all", "--steps", "3", "--json")
    assert cli(*words, "--weighting", "equal") == 0
    assert "drew one task a step" in cli.refused("improve", tmp_path / "all", "--write-plan", path)
    assert not path.exists()


def test_a_task_of_random_labels_that_the_reward_falls_for_is_named(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    for split in ("train", "dev", "test"):
        source = folder / "fruit" / f"{split}.jsonl"
        target = folder / "noise" / f"{split}.jsonl"
        target.parent.mkdir(exist_ok=True)
        rows = [json.loads(line) for line in source.read_text().splitlines()]
        for place, row in enumerate(rows):
            row["label"] = (place * 7919 >> 3) % 2
        target.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "study"
    words = ("--out", out, "--seeds", "2", "--workers", "1", "--steps", "300", "--json")
    assert cli("train", folder, *words) == 0
    assert cli("improve", out, "--write-plan", tmp_path / "plan.json", "--json") == 0
    notes = json.loads(cli.said().out.split("\n}\n", 1)[1])["notes"]
    assert any("`noise` gets" in note and "cannot be seen to rise" in note for note in notes)
