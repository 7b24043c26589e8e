"""The lesson of logs from Python: the same as the command's, with a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from taskmix.counterfactual import learn
from taskmix.engine import DigitsSource, Run, execute
from taskmix.errors import InputError
from taskmix.models import Perceptron
from taskmix.plans import Plan, Shares, Stages
from taskmix.policies import HardProgress, Uniform
from taskmix.records import Study
from taskmix.weighting import Equal

RUN = Run(
    label="uniform",
    source=DigitsSource(),
    tasks=("parity", "half", "loop"),
    architecture=Perceptron(hidden=(8,)),
    policy=Uniform(),
    reward=HardProgress(),
    steps=150,
    batch_size=8,
    seed=0,
)


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = Study(tmp_path_factory.mktemp("logged") / "study")
    for seed in (0, 1):
        execute(_with(seed=seed), study)
    execute(_with(label="equal", policy=None, reward=None, weighting=Equal(), steps=5), study)
    return study


def _with(**changes: object) -> Run:
    return replace(RUN, **changes)  # type: ignore[arg-type]


def test_a_study_teaches_a_plan_of_one_model(logged: Study) -> None:
    lessons = learn(logged, stages=False)
    assert len(lessons.runs) == 2, "all tasks every step draws nothing"
    assert lessons.steps == 300
    named = {row.policy: row for row in lessons.policies}
    assert set(named) == {"as logged", "uniform", "proportional", "tempered:2", "learned"}
    assert named["as logged"].gain is not None
    assert named["as logged"].gain.value == 0
    plan = lessons.plan()
    (part,) = plan.parts
    assert isinstance(part.division, Shares)
    assert plan.tasks == plan.targets == RUN.tasks
    assert plan.probabilities == pytest.approx(lessons.improvement.fixed.probabilities.tolist())
    runs = plan.runs(RUN, seeds=[7])
    assert [(run.seed, run.steps, run.tasks) for run in runs] == [(7, 150, RUN.tasks)]


def test_a_plan_rests_on_evidence_that_a_file_can_hold(logged: Study, tmp_path: Path) -> None:
    lessons = learn(logged.path)
    plan = lessons.plan(command="taskmix improve study")
    assert Plan.load(plan.save(tmp_path / "plan.json")) == plan
    assert plan.evidence["command"] == "taskmix improve study"
    assert len(plan.evidence["runs"]) == 2
    staged = len(lessons.improvement.begins) > 1
    assert isinstance(plan.parts[0].division, Stages) == staged


def test_several_studies_are_pooled_and_labels_choose_among_runs(logged: Study) -> None:
    twice = learn([logged, str(logged.path)], stages=False, labels=["uniform"])
    assert len(twice.runs) == 4
    with pytest.raises(InputError, match="Found runs labelled uniform in"):
        learn(logged, labels=["other"])


def test_a_folder_that_is_no_study_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Found no such folder"):
        learn(tmp_path / "missing")


def test_a_run_of_two_labels_is_chosen_by_either_and_learned_from_once(tmp_path: Path) -> None:
    study = Study(tmp_path)
    for label in ("first", "second"):
        execute(_with(label=label), study)
    for labels in (["first"], ["second"], ["first", "second"], None):
        assert len(learn(study, labels=labels, stages=False).runs) == 1
    with pytest.raises(InputError, match="runs labelled first, second"):
        learn(study, labels=["third"])
