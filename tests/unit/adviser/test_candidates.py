from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taskmix.adviser import baselines
from taskmix.engine import DigitsSource, Run
from taskmix.models import Perceptron
from taskmix.tasks import Split, TaskSet
from taskmix.weighting import Equal


class TwoInputs(DigitsSource):
    """Three tasks, two of them on the same rows."""

    def load(self) -> TaskSet:
        tasks = super().load()
        first, second, third = tasks.names[:3]
        rows = tasks[first].splits["train"]
        twin = Split(rows.inputs, np.zeros(len(rows), dtype=np.int64))
        shared = replace(tasks[second], splits={**tasks[second].splits, "train": twin})
        return TaskSet((tasks[first], shared, tasks[third]))


@pytest.mark.parametrize(("weighting", "batches"), [(None, 1), (Equal(), 2)])
def test_a_step_costs_a_batch_for_each_of_the_different_inputs(
    weighting: Equal | None, batches: int
) -> None:
    run = Run(
        label="x",
        source=TwoInputs(),
        architecture=Perceptron(),
        steps=1,
        seed=0,
        weighting=weighting,
    )
    assert run.batches_a_step == batches


def test_candidates_spend_the_same_number_of_batches() -> None:
    template = Run(label="x", source=TwoInputs(), architecture=Perceptron(), steps=120, seed=0)
    tasks = template.load()
    for candidate in baselines(tasks, tasks.names):
        runs = candidate.runs(template, seeds=[3], evaluations=4)
        assert sum(run.steps * run.batches_a_step for run in runs) == 120, candidate.name
