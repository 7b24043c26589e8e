"""Whatever Python holds that has columns is read as a file is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from torch.utils.data import TensorDataset

from taskmix.errors import InputError, TaskFileError
from taskmix.tasks import frame_table, gather_tasks, load_tasks

Columns = dict[str, Any]
OPTIONS: dict[str, Any] = {"task_column": "product", "label": "category"}


def columns(count: int = 60) -> Columns:
    generator = np.random.default_rng(0)
    amount = generator.normal(size=count)
    amount[5] = np.nan
    return {
        "product": ["loan", "card", "bank"] * (count // 3),
        "amount": amount,
        "channel": generator.choice(["web", "phone"], count),
        "urgent": generator.random(count) > 0.5,
        "category": generator.choice(["fraud", "other"], count),
    }


def pandas_frame(given: Columns) -> Any:
    return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(given)


def polars_frame(given: Columns) -> Any:
    return pytest.importorskip("polars", reason="polars is not installed").DataFrame(given)


def hub_dataset(given: Columns) -> Any:
    hub = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    return hub.Dataset.from_dict(given)


def rows(given: Columns) -> list[dict[str, Any]]:
    return [dict(zip(given, cells, strict=True)) for cells in zip(*given.values(), strict=True)]


def batches(given: Columns) -> pa.RecordBatch:
    return pa.table(given).to_batches()[0]


@pytest.mark.parametrize(
    "make", [dict, pandas_frame, polars_frame, hub_dataset, rows, pa.table, batches]
)
def test_a_frame_of_any_kind_is_read_as_its_parquet_file_is(
    make: Callable[[Columns], Any], tmp_path: Path
) -> None:
    table = frame_table(columns())
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    expected = load_tasks(tmp_path / "rows.parquet", **OPTIONS)
    found = load_tasks(make(columns()), **OPTIONS)
    assert found.names == ("bank", "card", "loan")
    assert found.contents == expected.contents
    assert found.notes == expected.notes
    assert found["card"].splits["train"].inputs.column("amount").null_count <= 1
    assert sum(task.splits["train"].inputs.column("amount").null_count for task in found) == 1


def test_columns_of_pandas_may_hold_anything() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(columns())
    frame["grade"] = frame["channel"].astype("category")
    frame["count"] = pandas.array([*range(59), None], dtype="Int64")
    frame["when"] = pandas.Timestamp("2024-01-01")
    frame["mixed"] = [1, "a"] * 30
    frame["sparse"] = pandas.arrays.SparseArray([0.0, 1.0, 2.0] * 20)
    frame.index = pandas.Index(range(100, 160), name="customer")
    tasks = load_tasks(frame, **OPTIONS)
    inputs = tasks["bank"].splits["train"].inputs
    assert set(inputs.column_names) >= {"amount", "grade", "mixed", "sparse"}
    assert pa.types.is_string(inputs.column("grade").type)
    assert set(inputs.column("mixed").to_pylist()) == {"1", "a"}
    notes = " ".join(tasks.notes)
    assert "The index (`customer`) of the frame is not read" in notes
    assert "the first is 'a' in the frame, row 2" in notes
    assert "`when`" in notes


def test_polars_is_read_without_pandas_and_neither_is_imported() -> None:
    code = (
        "import sys\nsys.modules['pandas'] = None\n"
        "from taskmix.tasks import load_tasks\n"
        "assert 'polars' not in sys.modules and 'datasets' not in sys.modules\n"
        "rows = {'x': [1.5, 2.5] * 20, 'label': ['a', 'b'] * 20}\n"
        "first = load_tasks(rows)\nassert 'polars' not in sys.modules\n"
        "import polars\n"
        "assert load_tasks(polars.DataFrame(rows)).contents == first.contents\n"
    )
    pytest.importorskip("polars", reason="polars is not installed")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_frames_by_task_and_by_split() -> None:
    table = frame_table({name: columns()[name] for name in ("amount", "category")})
    by_task = load_tasks({"loan": table, "card": rows(columns())}, label="category")
    assert by_task.names == ("loan", "card")
    assert by_task["loan"].sizes == {"train": 48, "dev": 6, "test": 6}
    by_split = load_tasks({"train": table, "validation": table, "notes": table}, label="category")
    assert by_split.names == ("category",)
    assert by_split[0].sizes == {"train": 60, "dev": 60}
    assert any("'notes' name no split" in note for note in by_split.notes)
    both = load_tasks(
        {"loan": {"train": table, "test": table}, "card": (table, table)}, label="category"
    )
    assert both["loan"].sizes == {"train": 54, "dev": 6, "test": 60}
    assert both["card"].sizes == {"train": 60, "dev": 60}


def test_a_frame_alone_is_called_after_its_target_and_several_targets_are_several_tasks() -> None:
    given = columns()
    del given["product"]
    assert load_tasks(given, label="category").names == ("category",)
    assert load_tasks(given, label=["category", "urgent"]).names == ("category", "urgent")
    assert load_tasks({"x": [1.0, 2.0, 3.0, 4.0], "label": ["a", "b"] * 2}).names == ("task",)


def test_a_split_column_and_a_settings_file_hold_for_frames_too(tmp_path: Path) -> None:
    given = columns() | {"part": ["train"] * 40 + ["test"] * 20}
    tasks = load_tasks(given, split_column="part", label="category", features=["amount"])
    assert tasks[0].sizes == {"train": 36, "dev": 4, "test": 20}
    path = tmp_path / "settings.toml"
    path.write_text(
        '[[task]]\nname = "kind"\nlabel = "category"\nfeatures = ["amount", "channel"]\n'
    )
    (task,) = load_tasks(given, settings=path)
    assert task.name == "kind"
    assert task.splits["train"].inputs.column_names == ["amount", "channel"]


def test_a_bad_cell_is_named_by_its_row_of_the_frame() -> None:
    with pytest.raises(TaskFileError, match=r"in the frame, row 2\."):
        load_tasks({"x": [1.0, 2.0], "y": [0.5, np.inf]}, label="y", kind="regression")
    with pytest.raises(TaskFileError, match=r"`category`.* in the train frame of loan"):
        load_tasks({"loan": {"train": {"x": [1.0, 2.0]}}}, label="category")


def stream() -> Any:
    return hub_dataset({"x": [1], "label": [2]}).to_iterable_dataset()


def lazy() -> Any:
    return polars_frame({"x": [1], "label": [2]}).lazy()


def levels() -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame([[1]], columns=pandas.MultiIndex.from_tuples([("a", "b")]))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (stream, "Found IterableDataset as the frame, a stream"),
        (lazy, r"Call `\.collect\(\)`"),
        (levels, "several levels"),
        (lambda: 5, "should be a frame .* Found int"),
        (list, "should be a frame .* Found list"),
        (lambda: {"a": 3}, "Task `a` should be a frame"),
        (lambda: {"x": [1, 2], "label": ["a"]}, "equal lengths. Found 2 in 'x', 1 in 'label'"),
        (lambda: pa.table([[1], [2]], names=["x", "x"]), "Found 'x' twice in the frame"),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_tasks(make())


def pairs(count: int = 40) -> tuple[Any, Any]:
    inputs = np.random.default_rng(1).normal(size=(count, 3))
    return inputs, (inputs[:, 0] > 0).astype(int)


def test_pairs_without_dev_are_divided_with_a_note() -> None:
    dataset = TensorDataset(*map(torch.as_tensor, pairs()))
    for given in ({"a": pairs()}, {"a": dataset}):
        tasks = load_tasks(given)
        assert tasks["a"].sizes == {"train": 32, "dev": 4, "test": 4}
        assert tasks["a"].splits["train"].inputs.column_names == ["x0", "x1", "x2"]
    held, encoding = gather_tasks({"a": dataset, "b": {"train": dataset}}, hold=True)
    assert encoding is not None
    assert held["a"].sizes == {"train": 32, "dev": 4, "test": 4}
    assert held["b"].sizes == {"train": 36, "dev": 4}
    assert [note.partition(":")[0] for note in held.notes] == ["`a`", "`b`"]
    rare = TensorDataset(torch.zeros(100, 2), torch.tensor([0] * 80 + [1] * 20))
    (task,), _ = gather_tasks({"a": rare}, hold=True)
    assert [int((split.targets == 1).sum()) for split in task.splits.values()] == [16, 2, 2]
    encoded = encoding.encode(held)
    assert len(encoded["a"].splits["dev"].inputs) == 4


@pytest.mark.parametrize(
    "given", [["good film", "bad film"], np.ones((5, 3)), "series of pandas"], ids=str
)
def test_texts_and_arrays_alone_are_no_pairs_of_input_and_target(given: Any) -> None:
    if isinstance(given, str):
        given = pytest.importorskip("pandas").Series(["good film", "bad film"])
    with pytest.raises(InputError, match=r"give \(input, target\)|should be a frame"):
        load_tasks(given)
