"""Which metric a task with classes has where nobody named one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from taskmix.engine import FolderSource
from taskmix.tasks import (
    Task,
    gather_tasks,
    held_tasks,
    load_tasks,
    reading_lines,
    tables_as_tasks,
    write_tasks,
)


def table(counts: dict[str, int], seed: int = 0) -> pa.Table:
    labels = [label for label, count in counts.items() for _ in range(count)]
    values = np.random.default_rng(seed).normal(size=len(labels))
    return pa.table({"x": values, "label": labels})


def task_of(train: dict[str, int], dev: dict[str, int] | None = None) -> Task:
    splits = {"train": table(train), "dev": table(dev or train, seed=1)}
    return tables_as_tasks({"a": splits})["a"]


@pytest.mark.parametrize(
    ("train", "metric"),
    [
        ({"no": 81, "yes": 19}, "auc"),
        ({"no": 19, "yes": 81}, "auc"),
        ({"no": 80, "yes": 20}, "accuracy"),
        ({"no": 20, "yes": 4}, "accuracy"),  # too few rows to tell a share
        ({"a": 70, "b": 20, "c": 10}, "macro_f1"),  # 0.7 is more than two thirds
        ({"a": 60, "b": 20, "c": 20}, "accuracy"),
        ({"a": 15} | {f"b{n}": 4 for n in range(40)}, "accuracy"),  # 0.09 misleads nobody
        ({"a": 60} | {f"b{n}": 4 for n in range(40)}, "macro_f1"),
    ],
)
def test_the_metric_follows_the_shares_of_the_classes(train: dict[str, int], metric: str) -> None:
    assert task_of(train).metric == metric


def test_two_classes_without_an_area_on_dev_keep_accuracy() -> None:
    assert task_of({"no": 95, "yes": 5}, dev={"no": 10}).metric == "accuracy"


def test_a_metric_that_is_named_stays(tmp_path: Path) -> None:
    rare = {"train": table({"no": 95, "yes": 5}), "dev": table({"no": 9, "yes": 1}, 1)}
    named = tables_as_tasks({"a": rare}, metric="accuracy")
    assert named["a"].metric == "accuracy"
    assert not named["a"].reading.by_imbalance
    write_tasks(named, tmp_path / "named")
    assert load_tasks(tmp_path / "named")[0].metric == "accuracy"
    (tmp_path / "plain").mkdir()
    for split, rows in rare.items():
        lines = [f"{x},{label}" for x, label in zip(*rows.to_pydict().values(), strict=True)]
        (tmp_path / "plain" / f"{split}.csv").write_text("\n".join(["x,label", *lines]))
    assert FolderSource(path=str(tmp_path / "plain")).load()[0].metric == "auc"
    said = FolderSource(path=str(tmp_path / "plain"), metric="average_precision").load()[0]
    assert (said.metric, said.reading.by_imbalance) == ("average_precision", False)


@pytest.mark.parametrize("hold", [True, False])
def test_tasks_made_in_python_have_the_same_default(hold: bool) -> None:
    rows = np.random.default_rng(0).normal(size=(100, 3))
    pairs = (rows, ["yes"] * 6 + ["no"] * 94)
    tasks, _ = gather_tasks({"a": (pairs, pairs)}, hold=hold)
    assert (tasks["a"].metric, tasks["a"].reading.by_imbalance) == ("auc", True)
    tasks, _ = gather_tasks({"a": (pairs, pairs)}, hold=hold, metric="accuracy")
    assert tasks["a"].metric == "accuracy"
    numbers, _ = held_tasks({"a": {"train": (rows, rows[:, 0])}})
    assert numbers["a"].metric == "rmse"


def test_one_line_says_so_for_all_tasks_that_are_alike() -> None:
    tables = {
        f"t{rare}": {
            "train": table({"no": 100 - rare, "yes": rare}),
            "dev": table({"no": 9, "yes": 1}),
        }
        for rare in (5, 6, 7)
    }
    even = {"train": table({"no": 50, "yes": 50}), "dev": table({"no": 5, "yes": 5})}
    lines = reading_lines(tables_as_tasks({**tables, "even": even}))
    (said,) = (line for line in lines if "scored by" in line)
    assert said.startswith(
        "3 tasks have 5 to 7 % of their rows in the rarer class: scored by auc, since a constant "
        "answer has accuracy 0.94."
    )
    assert "--metric" in said
    many = reading_lines(tables_as_tasks({"a": {"train": table({"a": 70, "b": 20, "c": 10})}}))
    assert "`a` has 70 % of its rows in the commonest class: scored by macro_f1" in many[-1]
