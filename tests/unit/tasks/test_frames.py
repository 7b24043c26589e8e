"""Whatever Python holds that has columns is read as a file is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from torch.utils.data import TensorDataset

from taskmix.errors import InputError, MissingExtraError, TaskFileError
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


# Data sets of the hub, which cannot be reached from here: a module of that name stands in.


class FakeDataset:
    """What `datasets.Dataset` is to us."""

    def __init__(self, columns: dict[str, list[Any]], **features: Any) -> None:
        self._table = pa.table(columns)
        self.features = dict.fromkeys(columns, SimpleNamespace()) | features

    def with_format(self, name: str) -> FakeDataset:
        assert name == "arrow"
        return self

    def __getitem__(self, rows: slice) -> pa.Table:
        return self._table[rows]


CLASSES = SimpleNamespace(names=["entailment", "neutral", "contradiction"])


def fake(monkeypatch: pytest.MonkeyPatch, found: Any) -> list[tuple[str, str | None]]:
    calls: list[tuple[str, str | None]] = []

    def load_dataset(name: str, config: str | None) -> Any:
        calls.append((name, config))
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    return calls


def class_pairs(labels: list[int]) -> FakeDataset:
    columns: dict[str, list[Any]] = {
        "premise": ["a"] * len(labels),
        "hypothesis": ["b"] * len(labels),
        "label": labels,
    }
    return FakeDataset(columns, label=CLASSES)


def test_splits_and_class_names_are_those_of_the_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "train": class_pairs([2, 0, 1, 0]),
        "validation_matched": class_pairs([1]),
        "validation_mismatched": class_pairs([0]),
        "unsupervised": class_pairs([0]),
    }
    calls = fake(monkeypatch, found)
    (task,) = load_tasks("hf:glue:mnli", text=["premise", "hypothesis"])
    assert calls == [("glue", "mnli")]
    assert task.name == "glue/mnli"
    assert task.labels == ("contradiction", "entailment", "neutral")
    assert task.sizes == {"train": 4, "dev": 1, "validation_mismatched": 1}
    assert task.inputs == "pair"
    assert task.splits["dev"].inputs.to_pylist() == [{"text": "a", "text2": "b"}]


def test_a_split_whose_labels_are_hidden_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, {"train": class_pairs([0, 1] * 5), "test": class_pairs([-1, -1])})
    tasks = load_tasks("hf:snli", text=["premise"])
    assert set(tasks[0].splits) == {"train", "dev"}
    assert "labels are hidden" in tasks.notes[0]


def test_a_data_set_that_cannot_be_had_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ConnectionError("no route"), FileNotFoundError("nope"), ValueError("Config?")):
        fake(monkeypatch, error)
        with pytest.raises(InputError, match=r"`hf:x` should be a data set .* Check the name"):
            load_tasks("hf:x")


def test_a_missing_package_is_said_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'taskmix\[hub\]'"):
        load_tasks("hf:glue:cola")


def test_real_objects_of_the_package_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "tokens": datasets.Sequence(datasets.Value("string")),
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B-x"])),
        }
    )
    words = {"text": ["a b", "c"], "tokens": [["a", "b"], ["c"]]}
    rows = words | {"label": [1, 0], "tags": [[0, 1], [0]]}
    found = datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows, features=features)})
    fake(monkeypatch, found | {"test": found["train"].select([1])})
    label, tags = load_tasks("hf:x", label=["label", "tags"])
    assert (label.labels, tags.labels) == (("no", "yes"), ("O", "B-x"))
    assert tags.splits["test"].inputs.column("tokens").to_pylist() == [["c"]]
    assert label.splits["test"].targets.tolist() == [0]


# Folders of `save_to_disk` are read without the package that wrote them.

FEATURES = {
    "text": {"dtype": "string", "_type": "Value"},
    "label": {"names": ["bad", "good"], "_type": "ClassLabel"},
}
ROWS = {"text": ["a b", "b c"] * 20, "label": [1, 0] * 20}


def save(folder: Path, rows: dict[str, list[object]] | None = None, files: int = 1) -> Path:
    """What `datasets` 5.2 writes, as far as it is read."""
    folder.mkdir(parents=True)
    table = pa.table(rows or ROWS)
    names = [f"data-{place:05}-of-{files:05}.arrow" for place in range(files)]
    for place, name in enumerate(names):
        part = table.slice(place * len(table) // files, len(table) // files)
        with pa.ipc.new_stream(folder / name, part.schema) as writer:
            writer.write_table(part)
    state = {"_data_files": [{"filename": name} for name in names], "_fingerprint": "x"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))
    return folder


def test_a_saved_data_set_is_a_task_with_the_names_of_its_classes(tmp_path: Path) -> None:
    tasks = load_tasks(save(tmp_path / "films", files=2))
    assert tasks.names == ("films",)
    assert tasks["films"].labels == ("bad", "good")
    assert tasks["films"].sizes == {"train": 32, "dev": 4, "test": 4}


def test_a_saved_dict_has_its_splits_and_a_folder_of_them_its_tasks(tmp_path: Path) -> None:
    for task in ("books", "films"):
        for split in ("train", "validation"):
            save(tmp_path / task / split)
        (tmp_path / task / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    assert load_tasks(tmp_path / "books")["books"].sizes == {"train": 40, "dev": 40}
    assert load_tasks(tmp_path).names == ("books", "films")


def test_it_is_what_the_package_writes(tmp_path: Path) -> None:
    hub = pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    hub.disable_progress_bars()
    features = hub.Features(
        {"text": hub.Value("string"), "label": hub.ClassLabel(names=["bad", "good"])}
    )
    dataset = hub.Dataset.from_dict(ROWS, features=features)
    hub.DatasetDict(train=dataset, test=dataset.select([3, 1])).save_to_disk(tmp_path / "films")
    code = (
        "import sys\nsys.modules['datasets'] = None\n"
        "from taskmix.tasks import load_tasks\n"
        "task = load_tasks('films')['films']\n"
        "assert task.labels == ('bad', 'good') and task.sizes['test'] == 2, task.sizes\n"
        "assert task.splits['test'].targets.tolist() == [0, 0]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, cwd=tmp_path)
    assert load_tasks({"films": dataset})["films"].labels == ("bad", "good")


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "state.json",
            '{"_data_files": [{"filename": "../other.arrow"}]}',
            "should name the Arrow",
        ),
        ("state.json", "[]", "should be a JSON object"),
        ("state.json", "{", "should be JSON"),
        ("state.json", '{"_data_files": []}', "should name the Arrow"),
        ("state.json", '{"_data_files": 3}', "should name the Arrow"),
        (
            "state.json",
            '{"_data_files": [{"filename": "a.arrow"}, {"filename": "a.arrow"}]}',
            "once",
        ),
        ("state.json", '{"_data_files": [{"filename": "\\ud800.arrow"}]}', "should be JSON"),
        ("dataset_info.json", '{"features": [1]}', "should be a JSON object"),
        ("dataset_info.json", '{"features": {"label": {"names": [0, 1]}}}', "list of texts"),
        (
            "dataset_info.json",
            '{"features": {"label": {"feature": {"names": "ab"}}}}',
            "list of texts",
        ),
        ("dataset_info.json", '{"features": {"label": {"names": ["\\ud800"]}}}', "should be JSON"),
        ("data-00000-of-00001.arrow", "nothing", "should be whole"),
    ],
)
def test_a_damaged_folder_gets_a_sentence(tmp_path: Path, file: str, text: str, said: str) -> None:
    folder = save(tmp_path / "films")
    (folder / file).write_text(text)
    with pytest.raises(TaskFileError, match=said):
        load_tasks(folder)


def test_names_of_splits_do_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    save(tmp_path / "secret")
    folder = save(tmp_path / "films")
    (folder / "dataset_dict.json").write_text('{"splits": ["../secret"]}')
    with pytest.raises(InputError, match="`splits` should name folders"):
        load_tasks(folder)
