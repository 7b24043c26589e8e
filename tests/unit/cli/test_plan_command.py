from __future__ import annotations

from pathlib import Path

import pytest

from taskmix.plans import Length, Part, Plan, Shares

from .running import Program


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    shares = Shares(probabilities=(0.25, 0.75))
    part = Part(tasks=("fruit", "tool"), scored=("fruit", "tool"), share=1.0, division=shares)
    return Plan(parts=(part,), length=Length(batches=20, batch_size=8)).save(tmp_path / "plan.json")


def test_rows_are_compared_with_those_of_the_study_around_the_plan(
    plan: Path, folder: Path, cli: Program
) -> None:
    from taskmix.records import Subject
    from taskmix.tasks import load_tasks

    Subject(contents=load_tasks(folder).contents, origin="here").settle(plan.parent)
    assert cli("plan", "check", plan, folder) == 0
    assert cli.said().out.count("yes") == 2
    with (folder / "tool" / "train.jsonl").open("a") as file:
        file.write('{"text": "one more", "label": 1}\n')
    assert "others of `tool`" in cli.refused("plan", "check", plan, folder)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--to", "keras"), "one of datasets, trl"),
        (("--to", "trl", "--path", "fruit"), "`=` and its file"),
        (("--to", "trl", "--steps", "0"), "above 0"),
        (("--to", "trl", "--data", "nowhere"), "no folder"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(
    words: tuple[str, ...], said: str, plan: Path, tmp_path: Path, cli: Program
) -> None:
    assert said in cli.refused("plan", "export", plan, *words, "--out", tmp_path / "m.yaml")
    assert not (tmp_path / "m.yaml").exists()
