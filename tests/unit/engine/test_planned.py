from __future__ import annotations

import pytest

from taskmix.engine import DigitsSource, Run, described_weighting, planned_runs
from taskmix.errors import InputError
from taskmix.models import Perceptron
from taskmix.policies import Fixed, Scheduled
from taskmix.records import Plan, Stage, describe
from taskmix.weighting import BanditMTL, Equal, Tchebycheff

TEMPLATE = Run(
    label="plan",
    source=DigitsSource(),
    architecture=Perceptron(),
    steps=1000,
    evaluate_every=100,
    checkpoint_every=50,
    seed=3,
)


def plan(**changes: object) -> Plan:
    given: dict[str, object] = {
        "tasks": ("half", "prime", "loop"),
        "probabilities": (0.5, 0.3, 0.2),
    }
    return Plan(**{**given, **changes})  # type: ignore[arg-type]


def test_a_plan_without_groups_is_one_run_of_its_tasks() -> None:
    (run,) = planned_runs(plan(), TEMPLATE, 1000)
    assert run.tasks == ("half", "prime", "loop")
    assert run.policy == Fixed((0.5, 0.3, 0.2))
    assert (run.steps, run.evaluate_every, run.checkpoint_every) == (1000, 100, 50)


def test_groups_share_the_batches_by_their_probabilities() -> None:
    both = planned_runs(plan(groups=(("loop", "half"), ("prime",))), TEMPLATE, 1000)
    assert [run.tasks for run in both] == [("half", "loop"), ("prime",)], "in the folder's order"
    assert [run.steps for run in both] == [700, 300]
    assert both[0].policy is not None
    assert tuple(both[0].policy.shares) == pytest.approx((5 / 7, 2 / 7))
    assert [run.evaluate_every for run in both] == [70, 30]


def test_stages_are_renormalised_within_a_group() -> None:
    stages = (
        Stage(begin=0.0, probabilities=(0.5, 0.3, 0.2)),
        Stage(begin=0.5, probabilities=(0.1, 0.3, 0.6)),
    )
    first, _ = planned_runs(
        plan(groups=(("half", "prime"), ("loop",)), stages=stages), TEMPLATE, 1000
    )
    assert isinstance(first.policy, Scheduled)
    (start, before), (middle, after) = first.policy.stages
    assert (start, middle) == (0, 400)
    assert before == pytest.approx((0.625, 0.375))
    assert after == pytest.approx((0.25, 0.75))


def test_a_weighting_takes_a_batch_of_each_task_a_step() -> None:
    weighting = BanditMTL(radius=0.1)
    found = plan(weighting=describe(weighting), groups=(("half", "prime"), ("loop",)))
    both, alone = planned_runs(found, TEMPLATE, 1000)
    assert both.weighting == weighting
    assert (both.policy, both.steps) == (None, 400)
    assert alone.weighting is None, "one task has nothing to weigh"
    assert alone.steps == 200


@pytest.mark.parametrize(
    "method", [Equal(), BanditMTL(radius=0.3), Tchebycheff(weights=(1.0, 2.0))]
)
def test_a_method_comes_back_from_its_description(method: object) -> None:
    assert described_weighting(describe(method)) == method  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"kind": "Balancer"},
        {"kind": "os.system"},
        {"kind": "BanditMTL", "nonsense": 1},
        {"kind": "BanditMTL", "radius": -1.0},
        {"kind": "BanditMTL", "radius": "x"},
        {"kind": 3},
    ],
)
def test_any_other_description_is_refused_in_words(description: dict[str, object]) -> None:
    with pytest.raises(InputError, match="A plan's weighting should"):
        described_weighting(description)


def test_a_task_that_is_not_there_and_one_without_a_share_are_refused() -> None:
    with pytest.raises(InputError, match="`nowhere` only in the plan"):
        planned_runs(plan(tasks=("half", "prime", "nowhere")), TEMPLATE, 10)
    with pytest.raises(InputError, match="Found 0 for `loop`"):
        planned_runs(plan(probabilities=(0.5, 0.5, 0.0)), TEMPLATE, 10)
