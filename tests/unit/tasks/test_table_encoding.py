from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoding_toys import dense, split, task

from taskmix.errors import InputError
from taskmix.tasks import (
    MISSING,
    Split,
    TableEncoding,
    TaskSet,
)


def test_numbers_are_standardised_by_the_training_rows_of_all_tasks() -> None:
    tasks = TaskSet(
        (
            task("a", "table", train=split({"x": [0.0, 2.0]}), test=split({"x": [4.0]})),
            task("b", "table", train=split({"x": [4, 6]})),
        )
    )
    encoded = TableEncoding().encode(tasks)
    # Mean 3, standard deviation sqrt(5), from the four training rows.
    expected = torch.tensor([[-3.0], [-1.0]]) / 5**0.5
    torch.testing.assert_close(dense(encoded, "a"), expected)
    torch.testing.assert_close(dense(encoded, "a", "test"), torch.tensor([[1.0]]) / 5**0.5)
    assert dense(encoded, "a").dtype == torch.float32
    raw = TableEncoding(standardize=False).encode(tasks)
    assert dense(raw, "b").tolist() == [[4.0], [6.0]]


def test_a_missing_number_becomes_the_mean_and_is_marked() -> None:
    tasks = TaskSet((task("a", "table", train=split({"x": [1.0, None, 3.0], "y": [1, 2, 3]})),))
    encoded = TableEncoding().encode(tasks)
    assert encoded.extra["features"] == ("x", "x is missing", "y")
    assert dense(encoded, "a")[:, :2].tolist() == [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def test_strings_and_booleans_become_indicators() -> None:
    train = split(
        {"colour": ["red", "blue", "red", "green", None], "flag": [True, False] * 2 + [True]}
    )
    test = split({"colour": ["pink"], "flag": [False]})
    encoded = TableEncoding(max_categories=2).encode(
        TaskSet((task("a", "table", train=train, test=test),))
    )
    assert encoded.extra["features"] == (
        "colour = blue",
        "colour = red",
        "colour is another",
        "colour is missing",
        "flag = false",
        "flag = true",
        "flag is another",
    )
    assert encoded.features == 7
    assert dense(encoded, "a").tolist() == [
        [0, 1, 0, 0, 0, 1, 0],
        [1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 0],
        [0, 0, 1, 0, 1, 0, 0],  # green is rarer than max_categories allows
        [0, 0, 0, 1, 0, 1, 0],
    ]
    assert dense(encoded, "a", "test").tolist() == [[0, 0, 1, 0, 1, 0, 0]]


def test_columns_are_the_union_over_tasks_and_zero_where_a_task_has_none() -> None:
    tasks = TaskSet(
        (
            task("a", "table", train=split({"z": [1.0, 3.0]})),
            task("b", "table", train=split({"c": ["u", "v"], "z": [5.0, 7.0]})),
        )
    )
    encoded = TableEncoding().encode(tasks)
    assert encoded.extra["features"] == ("c = u", "c = v", "c is another", "z")
    assert dense(encoded, "a")[:, :3].tolist() == [[0, 0, 0], [0, 0, 0]]


def test_numbers_that_are_codes_are_read_as_names() -> None:
    tasks = TaskSet((task("a", "table", train=split({"job": [10, 20, 10]})),))
    encoded = TableEncoding(codes=("job",)).encode(tasks)
    assert encoded.extra["features"] == ("job = 10", "job = 20", "job is another")


def test_an_infinite_number_is_refused_with_its_row() -> None:
    tasks = TaskSet((task("a", "table", train=split({"x": [1.0, 2.0, float("inf")]})),))
    with pytest.raises(InputError, match=r"should be finite. Found an infinite one in row 3"):
        TableEncoding().encode(tasks)


def test_a_column_of_dates_is_refused_by_name() -> None:
    when = pa.array([0], pa.timestamp("s"))
    tasks = TaskSet((task("a", "table", train=Split(pa.table({"when": when}), np.zeros(1))),))
    with pytest.raises(InputError, match=r"The column `when` should hold numbers, strings or boo"):
        TableEncoding().encode(tasks)


def test_regression_targets_stay_raw_and_their_scale_is_known() -> None:
    nan = float("nan")
    tasks = TaskSet(
        (
            task("a", "table", train=split({"x": [1, 2, 3]}, [10.0, 30.0, nan])),
            task("b", "table", train=split({"x": [1, 2]}, [5.0, 5.0])),
            task("c", "table", train=split({"x": [1, 2]}, [0, MISSING])),
        )
    )
    encoded = TableEncoding().encode(tasks)
    assert encoded.extra["target_scale"] == {"a": (20.0, 10.0), "b": (5.0, 1.0)}
    targets = encoded["a"].splits["train"].targets
    assert targets.dtype == torch.float32
    assert targets[:2].tolist() == [10.0, 30.0]
    assert targets[2].isnan()
    assert encoded["c"].splits["train"].targets.tolist() == [0, MISSING]
