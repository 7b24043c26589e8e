"""What is known of a task whose rows may have several labels before anything is trained."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.tasks import Split, Task, TaskSet, look_at

# Label a: 3 of 4 rows; b: 1 of 4.
MARKS = np.array([[1, 0], [1, 0], [1, 1], [0, 0]], dtype=np.int8)


def task(marks: NDArray[np.int8] = MARKS, texts: list[str] | None = None, name: str = "t") -> Task:
    words = texts or [f"text {row}" for row in range(len(marks))]
    others = [f"other {row}" for row in range(len(marks))]
    return Task(
        name=name,
        kind="multilabel",
        inputs="text",
        labels=tuple("abcd"[: marks.shape[1]]),
        metric="micro_f1",
        source=name,
        splits={
            "train": Split(pa.table({"text": words}), marks),
            "dev": Split(pa.table({"text": others}), marks),
        },
    )


def test_equal_inputs_with_other_labels_contradict_and_copies_of_a_task_are_found() -> None:
    generator = np.random.default_rng(0)
    marks = (generator.random((120, 2)) < 0.4).astype(np.int8)
    texts = [f"row {row}" for row in range(120)]
    twice = task(marks, texts), task(marks, texts, name="u")
    assert "same task twice" in {finding.kind for finding in look_at(TaskSet(twice))}
    texts[1], marks[0], marks[1] = texts[0], [1, 0], [1, 1]
    assert "contradiction" in {each.kind for each in look_at(TaskSet((task(marks, texts),)))}


def test_labels_that_stand_in_the_text_are_a_leak_where_all_of_them_do() -> None:
    generator = np.random.default_rng(1)
    marks = (generator.random((200, 2)) < 0.5).astype(np.int8)

    def texts(named: tuple[str, ...]) -> list[str]:
        return [
            " ".join([f"w{generator.integers(50)}" for _ in range(6)] + said)
            for said in ([n for n, mark in zip(named, row, strict=False) if mark] for row in marks)
        ]

    leaking = look_at(TaskSet((task(marks, texts(("alpha", "beta"))),)))
    assert "leak" in {finding.kind for finding in leaking}
    one_of_two = look_at(TaskSet((task(marks, texts(("alpha",))),)))
    assert "leak" not in {finding.kind for finding in one_of_two}
