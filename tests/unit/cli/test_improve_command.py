from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from taskmix.counterfactual import PolicyLessons, improve_stages, log_from_arrays

from .running import Program, run_cli

STEPS = 60


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


def lessons_of(rates: tuple[float, float]) -> PolicyLessons:
    """Of a log of two tasks whose performance rises from 0.05 by these rates a visit."""
    generator = np.random.default_rng(0)
    tasks = generator.integers(2, size=4000)
    visits = np.where(tasks, np.cumsum(tasks), np.cumsum(1 - tasks))
    reached = np.minimum(0.05 + np.array(rates)[tasks] * visits, 0.9)
    seen = np.clip(reached + 0.05 * generator.normal(size=4000), 0.01, 1.0)
    log = log_from_arrays(tasks, 1 - reached, np.full(4000, 0.5), -np.log(seen), names=["a", "b"])
    run = SimpleNamespace(summary=SimpleNamespace(name="r", step=4000, specification={}))
    return PolicyLessons(runs=(run,), improvement=improve_stages(log), policies=(), notes=())  # type: ignore[arg-type]


def test_a_gain_on_rows_that_did_not_teach_is_told_and_its_plan_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    # Task a is at its best after 425 of its 2,000 visits; b would gain by every further one.
    monkeypatch.setattr(
        "taskmix.counterfactual.learn", lambda *_, **__: lessons_of((0.002, 0.0002))
    )
    said = cli.out("improve", "study", "--write-plan", tmp_path / "plan.json")
    assert "On rows that did not teach it, the plan ends +0." in said
    assert "e-" not in said.replace("e-1", ""), "no number is written with an exponent"
    shares = json.loads((tmp_path / "plan.json").read_text())["evidence"]["gain"]
    assert 0 < shares["low"] < shares["value"] < shares["high"]


def test_where_nothing_is_to_gain_one_line_says_so_and_no_plan_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Program
) -> None:
    # Both tasks learn alike, so equal shares are the best already.
    monkeypatch.setattr(
        "taskmix.counterfactual.learn", lambda *_, **__: lessons_of((0.0003, 0.0003))
    )
    words = ("improve", "study", "--write-plan", tmp_path / "plan.json")
    assert cli.out(*words) == "Nothing to gain: keep the shares that were logged.\n"
    found = cli.json(*words, "--json")
    assert found["plan"] is None
    assert found["gain"]["low"] <= 5e-5
    assert not (tmp_path / "plan.json").exists()
