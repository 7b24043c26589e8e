from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from taskmix.tasks import TaskSet, digits_tasks

SHUFFLED = {"shuffled_parity", "shuffled_ten"}


def images(tasks: TaskSet, split_name: str) -> dict[str, NDArray[Any]]:
    """By task, the numbers of the images of a split."""
    pixels = load_digits().data
    places = {row.tobytes(): number for number, row in enumerate(pixels)}
    assert len(places) == len(pixels), "no two images are equal, so pixels name an image"
    result = {}
    for task in tasks:
        table = task.splits[split_name].inputs
        rows = np.column_stack([column.to_numpy() for column in table.columns])
        result[task.name] = np.array([places[row.tobytes()] for row in np.ascontiguousarray(rows)])
    return result


def test_there_are_eight_tasks_of_very_different_sizes() -> None:
    tasks = digits_tasks()
    assert dict(zip(tasks.names, tasks.sizes.tolist(), strict=True)) == {
        "ten_digits": 900,
        "parity": 300,
        "half": 150,
        "prime": 80,
        "loop": 50,
        "remainder": 30,
        "shuffled_parity": 900,
        "shuffled_ten": 600,
    }
    for task in tasks:
        assert (task.sizes["dev"], task.sizes["test"]) == (400, 497)
        assert set(task.splits["train"].targets) == set(range(len(task.labels)))


def test_answers_are_true_of_the_digit_except_where_shuffled() -> None:
    tasks = digits_tasks()
    digits = load_digits().target
    truths = {
        "ten_digits": digits,
        "parity": digits % 2,
        "half": digits >= 5,
        "prime": np.isin(digits, [2, 3, 5, 7]),
        "loop": np.isin(digits, [0, 6, 8, 9]),
        "remainder": digits % 3,
        "shuffled_parity": digits % 2,
        "shuffled_ten": digits,
    }
    for split_name in ("train", "dev", "test"):
        for name, rows in images(tasks, split_name).items():
            targets = tasks[name].splits[split_name].targets
            agreement = (targets == truths[name][rows]).mean()
            if name in SHUFFLED:
                assert agreement < 0.6
                counts = np.bincount(truths[name][rows])
                np.testing.assert_array_equal(np.bincount(targets), counts)
            else:
                assert agreement == 1.0
