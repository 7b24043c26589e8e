"""Rewards and weightings of losses: a member learns from its losses what it learns alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from fleet_toys import (
    RUN,
    MarkedRows,
    changed,
    must_meet_half_way,
    runs_of,
    side_by_side,
    tag_source,
    text_source,
    together,
)
from torch import Tensor

import taskmix.weighting
from taskmix.engine import Fleet, Optimization
from taskmix.errors import RunError
from taskmix.models import TextConvolution, WindowBiLSTM
from taskmix.policies import (
    HardProgress,
    Outcome,
    QuantileScaled,
    ScoreImprovement,
    SizeProportional,
    steps_without_draws,
)
from taskmix.records import Study
from taskmix.weighting import (
    IMTLL,
    BanditMTL,
    DynamicWeightAverage,
    Equal,
    FixedWeights,
    GeometricMean,
    GroupDRO,
    Needs,
    RandomWeights,
    SmoothTchebycheff,
    Tchebycheff,
    Uncertainty,
)

STACKED: list[Any] = [
    GeometricMean(),
    GroupDRO(step_size=0.3),
    SmoothTchebycheff(smoothness=0.1),
    SmoothTchebycheff(smoothness=1.0, logarithm=True),
    Tchebycheff(),
]
BY_MEMBER: list[Any] = [
    BanditMTL(),
    BanditMTL(smoothing=0.5, radius=0.05, large_losses="scale"),
    DynamicWeightAverage(),  # told of the epochs' ends
    DynamicWeightAverage(steps_per_epoch=3),
    IMTLL(),
    RandomWeights(seed=3),
    Uncertainty(),
]
# Fifty rows: an epoch is over every second or third step.
WEIGHED = replace(RUN, source=MarkedRows(), checkpoint_every=10)
SUBSETS = (("kind", "sum", "many"), ("sum",), ("many", "kind"), ("kind", "many"))


@dataclass(frozen=True, kw_only=True)
class Noisy:
    """A reward of one's own that draws in every step, and does not say so."""

    needs_loss_after: ClassVar[bool] = False

    def init(self, task_count: int) -> None:
        return None

    def observe(
        self, state: None, outcome: Outcome, generator: np.random.Generator
    ) -> tuple[float | None, None]:
        return outcome.loss + outcome.cost + generator.random(), None


@dataclass(frozen=True, kw_only=True)
class Refusing(Noisy):
    """One that fails at the first loss of a member."""

    steps_without_draws: ClassVar[float] = math.inf
    task_count: int = 3

    def init(self, task_count: int) -> Any:
        return task_count

    def observe(
        self, state: Any, outcome: Outcome, generator: np.random.Generator
    ) -> tuple[float | None, Any]:
        if state == self.task_count:
            raise RunError("This reward should be for fewer tasks.")
        return 0.0, state


@dataclass(frozen=True, kw_only=True)
class WorstOrAll:
    """A weighting of one's own that decides by the losses' values, and counts in plain numbers."""

    needs: ClassVar[Needs] = Needs.LOSSES

    def init(self, losses: Tensor) -> int:
        return 0

    def weigh(self, state: int, losses: Tensor, present: Tensor | None = None) -> Tensor:
        if state % 2 or float(losses.max()) < 0.5:
            return torch.ones_like(losses)
        return len(losses) * (losses == losses.max()) / (losses == losses.max()).sum()

    def update(self, state: int, losses: Tensor, present: Tensor | None = None) -> int:
        return state + 1


REWARDS: list[Any] = [
    HardProgress(),
    HardProgress(per_cost=True),
    ScoreImprovement(per_cost=True),
    QuantileScaled(reward=HardProgress()),
    QuantileScaled(reward=HardProgress(per_cost=True), reservoir=3),  # draws from the fourth on
    Noisy(),
]


def name_of(value: Any) -> str:
    return type(value).__name__


@pytest.mark.parametrize("weighting", [*STACKED, *BY_MEMBER, WorstOrAll()], ids=name_of)
def test_every_weighting_of_losses_weighs_and_learns_as_alone(
    tmp_path: Path, weighting: Any
) -> None:
    runs = together(runs_of(WEIGHED, SUBSETS, weighting=weighting))
    side_by_side(runs, tmp_path)
    must_meet_half_way(runs, Study(tmp_path / "alone"), tmp_path)


def test_the_weightings_tried_here_are_all_there_are() -> None:
    methods = [getattr(taskmix.weighting, name) for name in taskmix.weighting.__all__]
    joining = {
        method
        for method in methods
        if isinstance(method, type)
        and isinstance(getattr(method, "needs", None), Needs)
        and not method.needs.gradients_of_tasks
        and Needs.LOSSES_AFTER not in method.needs
    }
    assert joining == {Equal, FixedWeights, *map(type, [*STACKED, *BY_MEMBER])}


@pytest.mark.parametrize(
    "methods",
    [
        (GroupDRO(step_size=0.1), GroupDRO(step_size=0.9), GeometricMean(), Tchebycheff()),
        (BanditMTL(), Uncertainty(), DynamicWeightAverage(), RandomWeights()),
    ],
    ids=["stacked", "by member"],
)
def test_members_may_have_weightings_of_their_own_and_stop_early(
    tmp_path: Path, methods: tuple[Any, ...]
) -> None:
    runs = runs_of(WEIGHED, SUBSETS, steps=60, evaluate_every=4, patience=1)
    runs = [replace(r, weighting=method) for r, method in zip(runs, methods, strict=True)]
    side_by_side(together(runs), tmp_path)
    lengths = {summary.step for summary in Study(tmp_path / "together").summaries()}
    assert len(lengths) > 1  # the states of who goes on have moved with their members


@pytest.mark.parametrize("weighting", [GroupDRO(), BanditMTL()], ids=name_of)
def test_a_member_that_diverges_teaches_its_weighting_nothing_and_fails_alone(
    tmp_path: Path, weighting: Any
) -> None:
    rates = [1e-2, 1e30, 1e-2, 1e-2]
    runs = [
        replace(run, optimization=Optimization(optimizer="sgd", learning_rate=rate))
        for run, rate in zip(runs_of(WEIGHED, SUBSETS, weighting=weighting), rates, strict=True)
    ]
    side_by_side(together(runs), tmp_path)


@pytest.mark.parametrize("reward", REWARDS, ids=name_of)
def test_every_reward_that_needs_no_second_pass_is_logged_as_alone(
    tmp_path: Path, reward: Any
) -> None:
    runs = together(runs_of(weighting=None, reward=reward, evaluate_every=4))
    runs[1] = replace(runs[1], policy=SizeProportional())
    side_by_side(runs, tmp_path)
    steps = Study(tmp_path / "together").run(runs[0].specification()).steps()
    assert steps["reward"].drop_null().to_numpy().any()
    # Who draws is asked after every step: by then its reservoir has been full for long.
    calls = 14 if steps_without_draws(reward) < RUN.steps else 3
    must_meet_half_way(runs, Study(tmp_path / "alone"), tmp_path, calls)


@pytest.mark.parametrize("kind", ["texts", "windows"])
def test_a_step_costs_as_many_numbers_as_the_padded_batch_has(tmp_path: Path, kind: str) -> None:
    reward = HardProgress(per_cost=True)
    if kind == "texts":
        base = changed(RUN, TextConvolution(filters=4, dimension=6, min_count=1))
        base = replace(base, source=text_source(tmp_path), batch_size=4)
        subsets: Any = (("two", "three"), ("pair", "two", "long"), ("pair",))
    else:
        base = changed(RUN, WindowBiLSTM(width=2, hidden=4, dimension=6))
        base = replace(base, source=tag_source(tmp_path))
        subsets = (("entities", "parts"), ("parts",))
    side_by_side(together(runs_of(base, subsets, weighting=None, reward=reward)), tmp_path)


def test_a_reward_that_fails_ends_its_own_member_alone(tmp_path: Path) -> None:
    runs = together(runs_of(weighting=None, reward=Refusing()))
    results = Fleet(workers=1).run(runs, Study(tmp_path))
    assert [result.outcome for result in results] == ["finished", "failed", "finished"]
    assert results[1].error == "This reward should be for fewer tasks."


@pytest.mark.parametrize("weighting", [None, DynamicWeightAverage()], ids=["drawn", "weighed"])
def test_more_steps_between_evaluations_than_are_decided_at_once_are_all_learned_from(
    tmp_path: Path, weighting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskmix.engine._fleet._stepper.AHEAD_STEPS", 4)
    reward = None if weighting else HardProgress()
    base = replace(WEIGHED, evaluate_every=None, checkpoint_every=None)
    side_by_side(runs_of(base, SUBSETS, weighting=weighting, reward=reward, steps=50), tmp_path)
