"""Tasks of frames, arrays and data sets in memory."""

from __future__ import annotations

import pyarrow as pa
import pytest
import torch

from taskmix.tasks import gather_tasks, held_tasks


def test_columns_are_read_as_a_task_folder_is() -> None:
    rows = [{"text": f"word {n % 3}", "label": n % 2} for n in range(20)]
    tasks, held = gather_tasks(
        {"a": (rows, rows), "b": {"train": pa.Table.from_pylist(rows), "validation": rows}},
        hold=False,
    )
    assert held is None
    assert [task.inputs for task in tasks] == ["text", "text"]
    assert tasks["b"].sizes == {"train": 20, "dev": 20}
    texts = (["one", "two"], ["x", "y"])
    (task,), _ = gather_tasks({"t": (texts, texts)}, hold=False)
    assert (task.inputs, task.labels) == ("text", ("x", "y"))


def test_hugging_face_data_sets_are_read() -> None:
    hub = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    rows = hub.Dataset.from_dict({"text": ["one", "two"], "label": [0, 1]})
    tasks, _ = gather_tasks({"a": hub.DatasetDict(train=rows, validation=rows)}, hold=False)
    assert tasks["a"].sizes == {"train": 2, "dev": 2}


def test_inputs_of_one_s_own_are_held_as_they_are() -> None:
    items = [{"x": torch.ones(2), "n": 3}, {"x": torch.zeros(2), "n": 4}]
    tasks, encoding = held_tasks({"a": {"train": (items, [0.5, 1.5]), "dev": (items, [1.0, 2.0])}})
    assert tasks["a"].kind == "regression"
    (task,) = encoding.encode(tasks)
    batch = task.splits["train"].inputs.batch(torch.tensor([1, 0]))
    assert batch["x"].tolist() == [[0, 0], [1, 1]]
    assert batch["n"].tolist() == [4, 3]
    other, _ = held_tasks({"a": {"train": (items[::-1], [0.5, 1.5]), "dev": (items, [1.0, 2.0])}})
    assert other.content != tasks.content
    assert len(set(tasks["a"].splits["train"].inputs["digest"].to_pylist())) == 2
