from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from taskmix.tasks import Finding, Split, Task, TaskSet, look_at


def texts(name: str, **splits: list[tuple[str, int]]) -> Task:
    return Task(
        name=name,
        kind="classification",
        inputs="text",
        labels=("no", "yes"),
        metric="accuracy",
        source=name,
        splits={
            split: Split(
                pa.table({"text": pa.array([text for text, _ in rows], pa.string())}),
                np.array([label for _, label in rows], dtype=np.int64),
            )
            for split, rows in splits.items()
        },
    )


def plain(name: str, count: int = 120, *, first: int = 0) -> list[tuple[str, int]]:
    return [(f"{name} {number}", number % 2) for number in range(first, first + count)]


def kinds(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.kind for finding in findings]


def test_sound_tasks_give_no_finding() -> None:
    tasks = TaskSet(
        tuple(
            texts(n, train=plain(n), dev=plain(n, 20, first=500), test=plain(n, 20, first=700))
            for n in "ab"
        )
    )
    assert look_at(tasks) == ()


def test_test_rows_seen_in_training_are_counted() -> None:
    task = texts(
        "a",
        train=plain("a"),
        dev=plain("a", 10, first=500),
        test=plain("a", 30, first=90) + plain("a", 10, first=600),
    )
    (finding,) = look_at(TaskSet((task,)))
    assert finding.kind == "seen in training"
    assert finding.share == pytest.approx(30 / 40)
    assert "75.0% of its test rows" in finding.words


def test_a_copy_of_a_task_is_found_with_rows_in_another_order_and_labels_renamed() -> None:
    rows = plain("a", 200)
    dev = plain("d", 5)
    copy = [(text, 1 - label) for text, label in rows[::-1]][:150]
    found = look_at(
        TaskSet((texts("a", train=rows, dev=dev), texts("b", train=copy, dev=plain("e", 5))))
    )
    assert ("same task twice", ("a", "b")) in [(each.kind, each.tasks) for each in found]


def test_the_same_inputs_with_other_labels_are_no_copy() -> None:
    generator = np.random.default_rng(0)
    rows = plain("a", 200)
    other = [(text, int(generator.integers(2))) for text, _ in rows]
    found = look_at(
        TaskSet(
            (texts("a", train=rows, dev=plain("d", 5)), texts("b", train=other, dev=plain("e", 5)))
        )
    )
    assert kinds(found) == ["same inputs"]
    assert not found[0].is_warning


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([(f"x {n}", 0) for n in range(120)], ["one class"]),
        ([(f"x {n}", int(n == 0)) for n in range(120)], ["rare class", "imbalance"]),
        ([(f"x {n}", int(n < 7)) for n in range(120)], ["imbalance"]),
        ([(f"x {n % 60}", n // 60) for n in range(120)], ["contradiction"]),
        (plain("x", 99), ["few rows"]),
        (plain("x", 20), ["few rows"]),
    ],
)
def test_what_is_wrong_within_a_task_is_named(
    rows: list[tuple[str, int]], wrong: list[str]
) -> None:
    assert kinds(look_at(TaskSet((texts("a", train=rows, dev=plain("d", 4)),)))) == wrong


def test_imbalance_misleads_only_where_accuracy_is_the_score() -> None:
    rows = [(f"x {n}", int(n < 7)) for n in range(120)]
    task = texts("a", train=rows, dev=plain("d", 4))
    (finding,) = look_at(TaskSet((task,)))
    assert finding.words.endswith("a constant answer has accuracy 0.94, so auc says more.")
    assert finding.is_warning
    (finding,) = look_at(TaskSet((replace(task, metric="auc"),)))
    assert not finding.is_warning


def test_a_task_without_dev_rows_is_named() -> None:
    (finding,) = look_at(TaskSet((texts("a", train=plain("a")),)))
    assert finding.kind == "no dev rows"


def prompts(name: str, **splits: list[tuple[str, str]]) -> Task:
    return Task(
        name=name,
        kind="generation",
        inputs="prompt",
        labels=(),
        metric="exact_match",
        source=name,
        splits={
            split: Split(
                pa.table({"prompt": [ask for ask, _ in rows], "answer": [say for _, say in rows]}),
                np.empty(0),
            )
            for split, rows in splits.items()
        },
    )


def answered(count: int, *, first: int = 0) -> list[tuple[str, str]]:
    return [(f"what is {n}", f"word {n % 7}") for n in range(first, first + count)]


def test_a_prompt_seen_in_training_is_found_whatever_its_answer() -> None:
    seen = [(ask, "another") for ask, _ in answered(5)] + answered(15, first=500)
    tasks = TaskSet((prompts("a", train=answered(120), dev=answered(20, first=300), test=seen),))
    (finding,) = look_at(tasks)
    assert (finding.kind, finding.share) == ("seen in training", 0.25)


def test_tasks_that_are_written_are_looked_at_like_others() -> None:
    rows, dev = answered(120), answered(20, first=300)
    twice = TaskSet((prompts("a", train=rows, dev=dev), prompts("b", train=rows[::-1], dev=dev)))
    assert "same task twice" in kinds(look_at(twice))
    texts_only = Task(
        name="books",
        kind="language",
        inputs="passage",
        labels=(),
        metric="bits_per_byte",
        source="books",
        splits={
            "train": Split(pa.table({"text": [f"text {n}" for n in range(120)]}), np.empty(0)),
            "dev": Split(pa.table({"text": ["text 3", "new"]}), np.empty(0)),
        },
    )
    (finding,) = look_at(TaskSet((texts_only,)))
    assert (finding.kind, finding.share) == ("seen in training", 0.5)


def test_many_tasks_that_share_rows_are_compared_with_a_few_and_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(0)
    rows = plain("a", 150)
    labels = generator.integers(2, size=(60, len(rows)))
    labels[50] = 1 - labels[40]  # the only copy, among many with the same inputs
    tasks = []
    for number, own in enumerate(labels):
        texts_of = [(text, int(label)) for (text, _), label in zip(rows, own, strict=True)]
        own_dev = plain(f"d{number}", 5)
        tasks.append(texts(f"t{number}", train=texts_of, dev=own_dev, test=texts_of[:9]))
    compared: list[object] = []

    def counted(*given: Any) -> float:
        compared.append(given)
        return agreement(*given)

    looking = sys.modules[look_at.__module__]
    agreement = looking._agreement
    monkeypatch.setattr(looking, "_agreement", counted)
    found = {each.kind: each for each in look_at(TaskSet(tuple(tasks)))}
    assert len(compared) < 5 * len(tasks)
    assert found["same task twice"].tasks == ("t40", "t50")
    seen = found["seen in another task"]
    assert len(seen.tasks) == 60
    assert seen.words.endswith("In all, 60 tasks are like this.")
    assert seen.words.count("Task `") == 3
