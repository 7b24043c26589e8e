"""What a step of a weighting costs is what `Needs.passes` counts, by the products it computes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from taskmix.engine import Run, build
from taskmix.models import Perceptron
from taskmix.plans import Part, Weighted
from taskmix.tasks import Split, TaskSet, digits_tasks
from taskmix.training import train
from taskmix.weighting import (
    FAMO,
    MGDAUB,
    AnyWeighting,
    Equal,
    FairGrad,
    GradNorm,
    PCGrad,
)

LAYERS = 8  # so many that the first, whose inputs have no gradient, hardly counts


class Apart:
    """Three tasks with rows of their own."""

    def load(self) -> TaskSet:
        return digits_tasks().select(("parity", "half", "prime"))


class Shared:
    """Three tasks whose labels are columns of one table."""

    def load(self) -> TaskSet:
        tasks = Apart().load()
        first = tasks["parity"].splits
        return TaskSet(
            tuple(
                replace(
                    task,
                    source=tasks["parity"].source,
                    splits={
                        name: Split(rows.inputs, (rows.targets + place) % 2)
                        for name, rows in first.items()
                    },
                )
                for place, task in enumerate(tasks)
            )
        )


def products(run: Run) -> int:
    """Of the first step."""
    model, tasks = build(run)
    events = train(
        model,
        tasks,
        steps=1,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        generator=np.random.default_rng(0),
        weighting=run.weighting,
    )
    with FlopCounterMode(display=False) as counter:
        next(events)
    return int(counter.get_total_flops())


METHODS: list[AnyWeighting] = [
    FAMO(),
    FairGrad(),
    PCGrad(),
    MGDAUB(),
    GradNorm(),
]


@pytest.mark.parametrize("source", [Shared(), Apart()], ids=lambda source: type(source).__name__)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_step_costs_the_passes_that_are_counted_for_it(
    method: AnyWeighting, source: Shared | Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One walk for several tasks at once would be counted as one, though its products are theirs.
    monkeypatch.setattr("taskmix.weighting._gradients.BATCH_NUMBERS", 0)
    model = Perceptron(hidden=(64,) * LAYERS)
    plain = Run(label="x", source=source, architecture=model, steps=1, seed=0, weighting=Equal())
    run = replace(plain, weighting=method)
    counted = run.passes_a_step / plain.passes_a_step
    assert products(run) / products(plain) == pytest.approx(counted, rel=0.15)


def test_a_method_that_walks_back_for_every_task_costs_more_where_tasks_share_their_rows() -> None:
    run = Run(label="x", source=Apart(), architecture=Perceptron(), steps=1, seed=0)
    run = replace(run, weighting=FairGrad())
    assert run.passes_a_step == 3 * 3, "three batches, there and back"
    assert replace(run, source=Shared()).passes_a_step == 1 + 3 * 2, "one there, three times back"


def test_a_dear_method_gets_as_many_steps_as_the_plain_one_s_cost_pays_for() -> None:
    plain = Run(label="x", source=Shared(), architecture=Perceptron(), steps=700, seed=0)
    dear = replace(plain, weighting=FairGrad())
    assert plain.steps_for(700) == 700
    assert dear.steps_for(700) == 300
    assert replace(dear, steps=300).cost == pytest.approx(700)
    part = Part(
        tasks=plain.load().names,
        scored=plain.load().names,
        share=1.0,
        division=Weighted(method=FairGrad()),
    )
    assert part.run(plain).steps == 300
    assert replace(part, division=Weighted(method=Equal())).run(plain).steps == 700
