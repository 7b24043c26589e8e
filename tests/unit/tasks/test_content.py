from __future__ import annotations

import numpy as np
import pyarrow as pa

from taskmix.tasks import Split, Task, TaskSet


def _tasks(rows: pa.Table, targets: list[int], labels: tuple[str, ...] = ("no", "yes")) -> TaskSet:
    task = Task(
        name="t",
        kind="classification",
        inputs="text",
        labels=labels,
        metric="accuracy",
        source="t",
        splits={"train": Split(rows, np.array(targets))},
    )
    return TaskSet((task,))


def test_equal_rows_hash_alike_however_arrow_laid_them_out() -> None:
    long = pa.table({"text": ["zero", "one", None, "three", "four", "five"]})
    fresh = pa.table({"text": ["one", None, "three", "four"]})
    pieces = pa.concat_tables([long.slice(1, 1), long.slice(2, 3)])
    targets = [0, 1, 0, 1]
    expected = _tasks(fresh, targets).content
    assert _tasks(long.slice(1, 4), targets).content == expected
    assert _tasks(pieces, targets).content == expected


def test_any_change_of_rows_targets_or_labels_changes_the_hash() -> None:
    rows = pa.table({"text": ["a", "b"]})
    contents = {
        _tasks(rows, [0, 1]).content,
        _tasks(rows, [1, 1]).content,
        _tasks(rows, [0, 1], ("yes", "no")).content,
        _tasks(pa.table({"text": ["ab", ""]}), [0, 1]).content,
        _tasks(pa.table({"text": ["a", None]}), [0, 1]).content,
    }
    assert len(contents) == 5
