"""The runs of a plan: a model for each part, the batches divided over them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskmix.engine import DigitsSource, Optimization, Run
from taskmix.errors import InputError
from taskmix.models import USUAL_RATES, Perceptron, Transformer, tuned, tuning_of
from taskmix.plans import Part, Plan, Shares, Stage, Stages, Weighted
from taskmix.policies import Fixed, HardProgress, Scheduled, Uniform
from taskmix.records import describe
from taskmix.weighting import BanditMTL, Equal, Tchebycheff

TEMPLATE = Run(
    label="template",
    source=DigitsSource(),
    architecture=Perceptron(),
    steps=1000,
    evaluate_every=100,
    checkpoint_every=50,
    reward=HardProgress(),
    seed=3,
)
THREE = ("half", "prime", "loop")
SHARES = Shares(probabilities=(0.5, 0.3, 0.2))


def one(division: Shares | Stages | Weighted) -> Plan:
    part = Part(tasks=THREE, scored=THREE, share=1.0, division=division)
    return Plan(name="mine", parts=(part,))


def two(division: Shares | Stages | Weighted) -> Plan:
    return Plan(
        parts=(
            Part(tasks=THREE[:2], scored=THREE[:2], share=0.7, division=division),
            Part(tasks=THREE[2:], scored=THREE[2:], share=0.3, division=Shares.equal(1)),
        )
    )


def test_one_part_is_one_run_a_seed() -> None:
    first, second = one(SHARES).runs(TEMPLATE, seeds=[5, 6])
    assert (first.seed, second.seed, first.label) == (5, 6, "mine")
    assert first.tasks == THREE
    assert first.policy == Fixed((0.5, 0.3, 0.2))
    assert (first.steps, first.evaluate_every, first.checkpoint_every) == (1000, 100, 50)


def test_parts_share_the_batches_and_are_looked_at_as_often() -> None:
    both, alone = two(Shares.equal(2)).runs(TEMPLATE, seeds=[0])
    assert [run.steps for run in (both, alone)] == [700, 300]
    assert [run.evaluate_every for run in (both, alone)] == [70, 30]
    assert both.policy == alone.policy == Uniform()
    assert both.reward == HardProgress()
    assert alone.reward is None, "one task has nothing to choose"
    eight, _ = two(Shares.equal(2)).runs(TEMPLATE, seeds=[0], evaluations=8)
    assert (eight.evaluate_every, eight.checkpoint_every) == (87, 87)


def test_stages_begin_at_their_share_of_the_parts_own_steps() -> None:
    stages = Stages(
        stages=(
            Stage(begin=0.0, probabilities=(0.625, 0.375)),
            Stage(begin=0.5, probabilities=(0.25, 0.75)),
        )
    )
    first, _ = two(stages).runs(TEMPLATE, seeds=[0])
    assert first.policy == Scheduled(((0, (0.625, 0.375)), (350, (0.25, 0.75))))


def test_a_weighting_takes_a_batch_of_each_task_a_step() -> None:
    method = BanditMTL(radius=0.1)
    both, alone = two(Weighted(method=method)).runs(TEMPLATE, seeds=[0])
    assert (both.weighting, both.policy, both.reward) == (method, None, None)
    assert both.steps == 350
    assert (alone.weighting, alone.steps) == (None, 300)


def test_one_task_has_nothing_to_weigh() -> None:
    part = Part(tasks=("half",), scored=("half",), share=1.0, division=Weighted(method=Equal()))
    (run,) = Plan(parts=(part,)).runs(TEMPLATE, seeds=[0])
    assert (run.weighting, run.policy) == (None, Uniform())


def test_a_task_that_is_not_there_is_told() -> None:
    part = Part(tasks=("nowhere",), scored=(), share=1.0, division=Shares.equal(1))
    with pytest.raises(InputError, match="`nowhere` only in the plan"):
        Plan(parts=(part,)).runs(TEMPLATE, seeds=[0])


def weighted_by(description: Any, tmp_path: Path) -> Plan:
    """The plan of a file whose first part has this weighting."""
    path = two(Weighted(method=Equal())).save(tmp_path / "plan.json")
    document = json.loads(path.read_text())
    document["parts"][0]["weighting"] = description
    path.write_text(json.dumps(document))
    return Plan.load(path)


@pytest.mark.parametrize(
    "method", [Equal(), BanditMTL(radius=0.3), Tchebycheff(weights=(1.0, 2.0))]
)
def test_a_method_comes_back_from_its_description(method: Any, tmp_path: Path) -> None:
    assert weighted_by(describe(method), tmp_path).parts[0].division == Weighted(method=method)


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
def test_any_other_description_is_refused_in_words(description: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="A plan's weighting should"):
        weighted_by(description, tmp_path)


@pytest.mark.parametrize("tuning", ["heads", "adapters", "all", None])
def test_a_part_says_what_of_a_pretrained_encoder_is_trained(tuning: Any, tmp_path: Path) -> None:
    part = Part(
        tasks=("parity",), scored=("parity",), share=1.0, division=Shares.equal(1), tuning=tuning
    )
    Plan(parts=(part,)).save(tmp_path / "plan.json")
    (read,) = Plan.load(tmp_path / "plan.json").parts
    assert read == part
    run = Run(
        label="x",
        source=DigitsSource(),
        architecture=Transformer(path="minilm"),
        steps=4,
        seed=0,
    )
    made = read.run(replace(run, optimization=Optimization(learning_rate=2e-5)))
    assert tuning_of(made.architecture) == (tuning or "all")
    assert made.architecture == (tuned(run.architecture, tuning) if tuning else run.architecture)
    assert made.optimization.learning_rate == USUAL_RATES[tuning or "all"]
    given = read.run(replace(run, optimization=Optimization(learning_rate=0.5)))
    assert given.optimization.learning_rate == 0.5


def test_a_plan_whose_tasks_were_each_served_by_their_own_best_is_refused(tmp_path: Path) -> None:
    path = two(Shares.equal(2)).save(tmp_path / "plan.json")
    document = json.loads(path.read_text())
    document["parts"][0]["keep"] = "mean"  # which is what every plan means
    path.write_text(json.dumps(document))
    assert Plan.load(path) == two(Shares.equal(2))
    document["parts"][0]["keep"] = "each"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"best mean dev score\. Found `keep` 'each'"):
        Plan.load(path)


def test_a_part_with_a_tuning_wants_a_pretrained_encoder() -> None:
    part = Part(tasks=("a",), scored=("a",), share=1.0, division=Shares.equal(1), tuning="heads")
    run = Run(label="x", source=DigitsSource(), architecture=Perceptron(), steps=4, seed=0)
    with pytest.raises(InputError, match="should be a pretrained model"):
        part.run(run)
    with pytest.raises(InputError, match="one of heads, adapters, all"):
        replace(part, tuning="some")
