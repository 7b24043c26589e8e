"""The adviser with learning curves that are made up: what leads early need not lead late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from made_up_advice import MadeUpRun
from test_adviser import REAL, SHUFFLED, World, adviser

from taskmix.adviser import _estimate
from taskmix.adviser._advice import Advice
from taskmix.adviser._adviser import Adviser
from taskmix.adviser._answer import Answer, answer, plan_of
from taskmix.engine import Executed, Run
from taskmix.errors import RunError
from taskmix.records import RunFolder, Study

LEVELS = {"size": 0.85, "uniform": 0.97}  # where they end; all others at 0.75
SLOPES = {"size": 10.0, "uniform": 120.0}  # uniform is behind until about 920 batches


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_estimate, "DRAWS", 200)
    monkeypatch.setattr(_estimate, "WARM_UP", 50)


def curve(label: str, task: str, batches: float) -> float:
    if task in SHUFFLED:
        return 0.5 if task == "shuffled_parity" else 0.1
    return LEVELS.get(label, 0.75) - SLOPES.get(label, 10.0) / batches


@dataclass
class RisingWorld(World):
    """Scores after as many batches as a run has."""

    labels: dict[str, str] = field(default_factory=dict)  # of runs, by what specifies them

    def _execute(self, run: Run) -> Executed:
        names, own = run.tasks or (), run.steps * run.batches_a_step
        self.scorer = lambda run, task: curve(run.label, task, batches_of(names, own))
        self.labels[str(run.specification())] = run.label
        return super()._execute(run)


class RisingStudy(Study):
    """Has the evaluations that the runs of such a world would have made."""

    world: RisingWorld

    def run(self, specification: Mapping[str, Any], label: str = "") -> Any:
        names, steps = specification["tasks"]["names"], specification["steps"]
        found = self.world.labels.get(str(specification), "")
        a_step = len(names) if "weighting" in specification else 1
        marks = [max(steps * part // 8, 1) for part in range(1, 9)]
        scores = {
            name: [(step, curve(found, name, batches_of(names, a_step * step))) for step in marks]
            for name in names
        }
        return RisingRun(super().run(specification, label=label), MadeUpRun(scores))


@dataclass(frozen=True)
class RisingRun:
    """A run that was never made, but for its evaluations."""

    folder: RunFolder
    made_up: MadeUpRun

    def scores(self) -> Any:
        return self.made_up.scores()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.folder, name)


def batches_of(names: Sequence[str], own: float) -> float:
    """Of the whole way, where a model of these tasks has made its own of them."""
    return own * len(REAL + SHUFFLED) / len(names)


def made_in(world: RisingWorld, folder: Path, **options: Any) -> Adviser:
    made, _ = adviser(world, folder, "20000-steps", batches=500, **options)
    study = RisingStudy(folder)
    study.world = world
    made.study = study
    return made


def advised(folder: Path, **options: Any) -> tuple[Advice, Answer, RisingWorld]:
    world = RisingWorld(noise=0.001)
    made = made_in(world, folder, **options)
    advice = made.run()
    return advice, answer(advice, made.study), world


def test_the_leaders_are_run_again_and_longer_where_longer_runs_may_change_places(
    tmp_path: Path,
) -> None:
    advice, found, world = advised(tmp_path, train_batches=4000)
    assert set(advice.long) == {"size", "uniform"}
    assert 2 * 500 <= advice.long_batches <= 4000
    assert max(run.steps for run in world.done) == advice.long_batches
    assert advice.spent <= 20_000
    assert found.chosen.name == "uniform", "which is behind in the runs that all ways have"
    early = {name: advice.race.standing(name).mean for name in ("size", "uniform")}
    assert early["uniform"] < early["size"]
    plan = plan_of(advice, found)
    assert plan.length is not None
    assert plan.length.batches == 4000
    expected = {each.task: each for each in plan.expected}["parity"]
    assert expected.low <= 0.97 - 120 / 4000 <= expected.high


def test_for_a_training_as_long_as_the_runs_who_leads_them_is_advised(tmp_path: Path) -> None:
    advice, found, world = advised(tmp_path, train_batches=500)
    assert found.chosen.name == "size"
    assert advice.long == {}
    assert max(run.steps for run in world.done) <= 500


def test_without_a_length_it_is_until_the_curves_are_flat(tmp_path: Path) -> None:
    advice, found, _ = advised(tmp_path)
    assert advice.growth is not None
    assert advice.promised == round(advice.growth.flat_after) > 500
    assert any("until the curves are flat" in line for line in found.lines)


def test_stopping_anywhere_and_going_on_makes_the_same_longer_runs(tmp_path: Path) -> None:
    advice, found, _ = advised(tmp_path / "whole", train_batches=4000)
    world = RisingWorld(noise=0.001)
    stops = 0
    for left in (10, 12, 5, 1, 1, 3, *[4] * 50):
        world.left = left
        made = made_in(world, tmp_path / "parts", train_batches=4000)
        try:
            again = made.run()
            break
        except RunError:
            stops += 1
    assert stops > 2
    assert plan_of(again, answer(again, made.study)) == plan_of(advice, found)
    assert again.long_batches == advice.long_batches
