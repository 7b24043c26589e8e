from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

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
