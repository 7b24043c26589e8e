"""The rare class with a task that helps and one that harms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from taskmix.tasks import (
    Split,
    Task,
    TaskSet,
    digits_tasks,
    load_tasks,
    simulate_imbalanced,
    simulate_tasks,
    write_tasks,
)

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


# The rare class with a task that helps and one that harms.


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


def test_the_helping_task_follows_the_targets_direction_and_the_harming_one_does_not() -> None:
    found = directions(world(rows=20_000, other_rows=20_000))
    assert found["target"] @ found["helps"] == pytest.approx(0.95, abs=0.04)
    assert abs(found["target"] @ found["harms"]) < 0.4


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
