"""The circle of docs/design.md: runs, records, lessons, a plan, and the runs that follow it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from taskmix import counterfactual, transfer
from taskmix.engine import DigitsSource, Here, Run
from taskmix.models import Perceptron
from taskmix.plans import Plan
from taskmix.policies import HardProgress, Uniform
from taskmix.records import Study
from taskmix.transfer import SubsetDesign, TransferStudy

TASKS = ("parity", "half", "prime", "loop")
TEMPLATE = Run(
    label="first",
    source=DigitsSource(tasks=TASKS),
    architecture=Perceptron(hidden=(4,)),
    policy=Uniform(),
    reward=HardProgress(),
    steps=60,
    evaluate_every=20,
    seed=0,
)


def followed(plan: Plan, folder: Path) -> Study:
    """The study of the runs that carry a plan out, read back from its file first."""
    plan.save(folder / "plan.json")
    runs = Plan.load(folder / "plan.json").runs(replace(TEMPLATE, label="next"), seeds=[5, 6])
    study = Study(folder / "next")
    assert all(result.is_done for result in Here(workers=1).run(runs, study))
    return study


def test_a_policy_learned_from_records_is_what_the_next_runs_draw_by(tmp_path: Path) -> None:
    first = Study(tmp_path / "first")
    Here(workers=1).run([replace(TEMPLATE, seed=seed) for seed in range(3)], first)
    plan = counterfactual.learn(first.path, entropy=0.2, stages=False).plan()
    study = followed(plan, tmp_path)
    drawn = [run.steps(["probabilities"])["probabilities"][0].as_py() for run in study.runs()]
    assert drawn == [list(plan.probabilities)] * 2


def test_groups_learned_from_subsets_are_the_models_that_are_trained_next(tmp_path: Path) -> None:
    asked = TransferStudy(
        template=replace(TEMPLATE, policy=None, reward=None, steps=6, evaluate_every=None),
        targets=TASKS,
        design=SubsetDesign(count=8, alone=2, held_out=3, size=2),
    )
    lessons = transfer.study_transfer(asked, Study(tmp_path / "first"), executor=Here(workers=1))
    plan = lessons.plan()
    study = followed(plan, tmp_path)
    trained = sorted(summary.task_names for summary in study.summaries())
    assert trained == sorted(2 * [part.tasks for part in plan.parts])
