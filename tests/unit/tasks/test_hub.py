"""Data sets of the hub, which cannot be reached from here: a module of that name stands in."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from taskmix.errors import InputError, MissingExtraError, TaskFileError
from taskmix.tasks import load_tasks


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


def pairs(labels: list[int]) -> FakeDataset:
    columns: dict[str, list[Any]] = {
        "premise": ["a"] * len(labels),
        "hypothesis": ["b"] * len(labels),
        "label": labels,
    }
    return FakeDataset(columns, label=CLASSES)


def test_splits_and_class_names_are_those_of_the_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "train": pairs([2, 0, 1, 0]),
        "validation_matched": pairs([1]),
        "validation_mismatched": pairs([0]),
        "unsupervised": pairs([0]),
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
    fake(monkeypatch, {"train": pairs([0, 1] * 5), "test": pairs([-1, -1])})
    tasks = load_tasks("hf:snli", text=["premise"])
    assert set(tasks[0].splits) == {"train", "dev"}
    assert "labels are hidden" in tasks.notes[0]


def test_a_row_whose_label_is_hidden_is_left_out_or_refused_by_strict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake(monkeypatch, {"train": pairs([0, -1])})
    with pytest.raises(TaskFileError, match="hf:snli/train, row 2"):
        load_tasks("hf:snli", text=["premise"], strict=True)
    assert load_tasks("hf:snli", text=["premise"])[0].sizes == {"train": 1}


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
