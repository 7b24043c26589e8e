from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from taskmix.adviser._candidates import baselines, distinct, in_groups, with_shares
from taskmix.adviser._propose import capped, one_left_out
from taskmix.engine import DigitsSource, Run
from taskmix.models import Perceptron
from taskmix.tasks import Split, Task, TaskSet
from taskmix.weighting import Equal

NAMES = ("a", "b", "c")


def tasks_of(sizes: tuple[int, int, int]) -> TaskSet:
    def task(name: str, size: int) -> Task:
        rows = Split(pa.table({"x": [0.0] * size}), np.zeros(size, dtype=np.int64))
        return Task(
            name=name,
            kind="classification",
            inputs="table",
            labels=("0",),
            metric="accuracy",
            source=name,
            splits={"train": rows},
        )

    return TaskSet(tuple(task(name, size) for name, size in zip(NAMES, sizes, strict=True)))


def names_of(sizes: tuple[int, int, int]) -> list[str]:
    return [each.name for each in distinct(baselines(tasks_of(sizes), NAMES))]


def test_in_proportion_to_rows_is_no_way_of_its_own_where_all_have_as_many() -> None:
    assert names_of((5, 5, 5)) == ["single", "uniform", "equal"]
    assert names_of((5, 5, 6)) == ["single", "uniform", "size", "equal"]


def test_what_is_known_already_is_not_tried_under_another_name() -> None:
    known = baselines(tasks_of((5, 5, 5)), NAMES)
    even = with_shares("learned", "", NAMES, [1 / 3] * 3)
    odd = with_shares("learned", "", NAMES, [0.5, 0.25, 0.25])
    alone = in_groups("groups", "", [["a"], ["b"], ["c"]])
    assert distinct([even, odd, odd, alone], known) == [odd]


def test_one_huge_task_is_capped_at_the_median_of_the_sizes() -> None:
    plan = capped(tasks_of((10, 20, 2000)), NAMES)
    assert plan is not None
    assert plan.probabilities == pytest.approx((0.2, 0.4, 0.4))  # 10, 20 and 20 rows


@pytest.mark.parametrize("sizes", [(20, 20, 21), (20, 20, 2000), (18, 20, 22)])
def test_no_cap_is_tried_where_it_would_give_shares_that_are_tried_already(
    sizes: tuple[int, int, int],
) -> None:
    assert capped(tasks_of(sizes), NAMES) is None


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


def test_of_few_tasks_each_is_left_out_in_turn() -> None:
    every = one_left_out(("a", "b", "c"), ("a", "b", "c"), for_all=True)
    assert [plan.name for plan in every] == ["a apart", "b apart", "c apart"]
    assert [[part.tasks for part in plan.parts] for plan in every][1] == [("a", "c"), ("b",)]
    for_one = one_left_out(("a", "b", "c"), ("a",), for_all=False)
    assert [plan.name for plan in for_one] == ["without b", "without c"]
    assert all(plan.targets == ("a",) for plan in for_one), "the target is never left out"
