"""The rare class with a task that helps and one that harms."""

from __future__ import annotations

import numpy as np
import pytest

from taskmix.tasks import TaskSet, simulate_imbalanced


def world(seed: int = 0, **sizes: int) -> TaskSet:
    return simulate_imbalanced(**sizes, generator=np.random.default_rng(seed))  # type: ignore[arg-type]


def directions(tasks: TaskSet) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """Of each task, the mean of the positive rows minus that of the others, of length one."""
    found = {}
    for task in tasks:
        split = task.splits["train"]
        rows = np.stack([split.inputs.column(n).to_numpy() for n in split.inputs.column_names], 1)
        apart = rows[split.targets == 1].mean(axis=0) - rows[split.targets == 0].mean(axis=0)
        found[task.name] = apart / np.linalg.norm(apart)
    return found


def test_shares_of_positives_are_what_was_asked_for() -> None:
    tasks = simulate_imbalanced(
        positives=0.1, rows=200, other_rows=500, generator=np.random.default_rng(0)
    )
    assert [float(task.splits["train"].targets.mean()) for task in tasks] == [0.1, 0.1, 0.5]
    assert all(set(task.splits) == {"train", "dev", "test"} for task in tasks)


def test_the_helping_task_follows_the_targets_direction_and_the_harming_one_does_not() -> None:
    found = directions(world(rows=20_000, other_rows=20_000))
    assert found["target"] @ found["helps"] == pytest.approx(0.95, abs=0.04)
    assert abs(found["target"] @ found["harms"]) < 0.4
