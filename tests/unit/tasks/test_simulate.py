from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError
from taskmix.tasks import MISSING, Split, Task, load_tasks, simulate_tasks, write_tasks

TAGS = ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")


def tagging(words: int = 3000, seed: int = 0) -> Task:
    """Sentences of one to nine words."""
    generator = np.random.default_rng(seed)
    splits = {}
    for name, count in (("train", words), ("dev", 200), ("test", 200)):
        lengths: list[int] = []
        while sum(lengths) < count:
            lengths.append(int(generator.integers(1, 10)))
        lengths[-1] -= sum(lengths) - count
        sentences = [[f"w{generator.integers(50)}" for _ in range(n)] for n in lengths if n]
        targets = generator.choice(5, count, p=[0.6, 0.1, 0.1, 0.1, 0.1])
        tokens = pa.array(sentences, pa.list_(pa.string()))
        splits[name] = Split(pa.table({"tokens": tokens}), targets.astype(np.int64))
    return Task(
        name="ner", kind="tagging", inputs="tokens", labels=TAGS, metric="entity_f1", source="ner",
        splits=splits,
    )  # fmt: skip


def classes(rows: int = 2000, labels: int = 4) -> Task:
    generator = np.random.default_rng(0)
    splits = {}
    for name, count in (("train", rows), ("dev", 50)):
        texts = pa.table({"text": [f'text {i} "quoted", ünï' for i in range(count)]})
        targets = generator.integers(0, labels, count)
        targets[:labels] = range(labels)
        splits[name] = Split(texts, targets)
    return Task(
        name="topics", kind="classification", inputs="text",
        labels=tuple("dbac"[:labels]), metric="accuracy", source="topics", splits=splits,
    )  # fmt: skip


def made(task: Task, **options: object):  # type: ignore[no-untyped-def]
    return simulate_tasks(task, generator=np.random.default_rng(0), **options)  # type: ignore[arg-type]


def test_alpha_one_copies_the_labels_without_b_and_i() -> None:
    found = made(tagging(), count=2, alpha=1.0)
    np.testing.assert_allclose(found.information, 1.0)
    real = found.tasks["ner"].splits["dev"].targets
    copy = found.tasks["artificial1"].splits["dev"].targets
    inside = np.array([0, 1, 2, 1, 2])  # O, LOC, PER, LOC, PER
    assert copy.tolist() == inside[real].tolist()


def test_labels_follow_the_matrix_of_the_document() -> None:
    task = classes(60_000)
    found = made(task, count=1, alpha=0.7)
    real = task.splits["train"].targets
    new = found.tasks[1].splits["train"].targets
    for i in range(4):
        shares = np.bincount(new[real == i], minlength=4) / (real == i).sum()
        np.testing.assert_allclose(shares, [0.7 if i == j else 0.1 for j in range(4)], atol=0.015)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.02, 0.98), st.integers(4, 7))
def test_a_wanted_information_is_met(wanted: float, labels: int) -> None:
    found = made(classes(3000), count=1, ami=wanted, labels=labels)
    assert found.information[0] == pytest.approx(wanted, abs=0.01)


def test_unbalanced_tasks_have_the_rows_they_were_promised() -> None:
    found = made(tagging(), count=2, alpha=0.9, samples=[2000, 500], real_samples=300)
    sizes = [len(task.splits["train"].targets) for task in found.tasks]
    assert sizes == [300, 2000, 500]
    words = [task.splits["train"].inputs.column("tokens") for task in found.tasks]
    flat = [[w for sentence in column.to_pylist() for w in sentence] for column in words]
    assert flat[0] == flat[1][:300]
    assert all(split == "train" or len(found.tasks[0].splits[split].targets) == 200
               for split in found.tasks[0].splits)  # fmt: skip


def test_rows_without_a_label_stay_without() -> None:
    task = classes()
    task.splits["train"].targets[5:9] = MISSING
    found = made(task, count=1, alpha=0.9)
    assert found.tasks[1].splits["train"].targets[5:9].tolist() == [MISSING] * 4


@pytest.mark.parametrize("task", [tagging(400), classes(60)])
def test_a_folder_that_is_written_is_read_back_equal(task: Task, tmp_path: Path) -> None:
    found = made(task, count=2, alpha=0.8)
    write_tasks(found.tasks, tmp_path / "out")
    back = load_tasks(tmp_path / "out")
    assert set(back.names) == set(found.tasks.names)
    for wanted in found.tasks:
        read = back[wanted.name]
        assert (read.kind, read.labels, read.metric) == (wanted.kind, wanted.labels, wanted.metric)
        for name, split in wanted.splits.items():
            assert read.splits[name].targets.tolist() == split.targets.tolist()
            assert read.splits[name].inputs.to_pylist() == split.inputs.to_pylist()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="new, empty"):
        write_tasks(made(classes(), count=1, alpha=0.5).tasks, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 1.5}, {"alpha": -0.1}, {"alpha": [0.5]}, {"alpha": 0.5, "ami": 0.5}, {},
        {"ami": 1.2}, {"ami": -0.5}, {"alpha": 0.5, "labels": 1}, {"alpha": 0.5, "samples": 0},
        {"alpha": 0.5, "samples": 10_000}, {"alpha": 0.5, "count": 0},
    ],
)  # fmt: skip
def test_bad_options_are_told(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        made(classes(), **{"count": 2, **options})
