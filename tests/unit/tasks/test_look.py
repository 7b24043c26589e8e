"""Labels in the inputs: found in each draw, and nowhere else."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from taskmix.tasks import Finding, Split, Task, TaskSet, look_at, tables_as_tasks
from taskmix.tasks._row_keys import column_keys, group_keys, table_keys, target_keys


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


# Labels in the inputs: found in each draw, and nowhere else.

WORDS = [f"word{place}" for place in range(200)] + ["no", "yes", "good", "bad", "neutral"]


def text_task(
    labels: list[str], leak: str | None, *, seed: int, rows: int = 300, known: float = 1.0
) -> Task:
    """Texts of which some words have to do with the label, and to which `leak` is added."""
    generator = np.random.default_rng(seed)
    chosen = generator.choice(labels, rows).tolist()
    texts = []
    for label in chosen:
        words = generator.choice(WORDS, 30).tolist()
        if generator.random() < 0.7:  # a word that is honestly of some use
            words[3] = f"about_{label}"
        if leak is not None and generator.random() < known:
            place = {"first": 0, "last": len(words), "inside": 7}[leak]
            words[place:place] = [label] if leak != "inside" else ["label", label]
        texts.append(" ".join(words))
    return tables_as_tasks({"a": {"train": pa.table({"text": texts, "label": chosen})}})["a"]


def find_leak(task: Task) -> str | None:
    """What is said of labels in the inputs; None where nothing is."""
    return next((each.words for each in look_at(TaskSet((task,))) if each.kind == "leak"), None)


def table_task(columns: dict[str, object], labels: object) -> Task:
    return tables_as_tasks({"a": {"train": pa.table({**columns, "label": labels})}})["a"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("where", ["first", "last", "inside"])
@pytest.mark.parametrize("labels", [["no", "yes"], ["good", "bad", "neutral"]])
def test_a_label_put_into_its_text_is_named_and_texts_without_are_not(
    labels: list[str], where: str, seed: int
) -> None:
    found = find_leak(text_task(labels, where, seed=seed))
    assert found is not None
    assert "the label's own name in the text" in found
    assert find_leak(text_task(labels, None, seed=seed)) is None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rare", [0.5, 0.06])
def test_a_column_that_alone_tells_the_label_is_named(rare: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(600, 3))
    labels = values[:, 0] + generator.normal(size=600) > np.quantile(values[:, 0], 1 - rare)
    columns: dict[str, object] = {f"x{place}": values[:, place] for place in range(3)}
    words = np.where(labels, "yes", "no").tolist()
    assert find_leak(table_task(columns, words)) is None, "a good column is no leak"
    close = labels + generator.normal(0, 0.1, size=600)
    coded = np.where(labels, "A7", "B2").tolist()
    for leak in (close, coded, labels.astype(int)):
        found = find_leak(table_task({**columns, "outcome": leak}, words))
        assert found is not None
        assert "inputs: the column `outcome` tells" in found


def test_columns_that_tell_nothing_are_no_leaks_however_common_a_class_is() -> None:
    generator = np.random.default_rng(0)
    labels = np.where(generator.random(1000) < 0.02, "yes", "no").tolist()
    columns = {
        "few values": generator.integers(0, 2, 1000),
        "many values": generator.normal(size=1000),
        "a name": [f"row {number}" for number in range(1000)],
    }
    assert find_leak(table_task(columns, labels)) is None


def test_a_number_to_predict_that_stands_in_a_column_is_named() -> None:
    values = np.random.default_rng(0).normal(size=(200, 2))
    target = values[:, 0] + 0.3 * values[:, 1]
    assert find_leak(table_task({"x": values[:, 0]}, target)) is None
    found = find_leak(table_task({"x": values[:, 0], "in cents": 100 * target}, target))
    assert found is not None
    assert "inputs: the column `in cents` tells" in found


# Rows have one key where they are equal in Python, and only there.


def frozen(value: Any) -> Any:
    """The plain way: cells as Python compares them, NaN equal to itself."""
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple(map(frozen, value.items()))
    return "NaN" if isinstance(value, float) and value != value else value


COLUMNS: dict[str, pa.Array] = {
    "whole": pa.array([0, 1, -1, -2, 2**53, 2**53 + 1, None, 1]),
    "floating": pa.array([0.0, -0.0, 1.0, float("nan"), None, 1e300, 2.5, float("nan")]),
    "truth": pa.array([True, False, None, True]),
    "words": pa.array(["a", "b", "a", "", None, "1"]),
    "lists": pa.array([["a", "b"], ["ab"], ["b", "a"], [], None, ["a", "b"], ["a", None]]),
    "numbers": pa.array([[-1.0], [-2.0], [1.0, 2.0], [2.0, 1.0], [-1.0]]),
    "nested": pa.array([[[1], [2]], [[1, 2]], [[1], [2]]]),
    "messages": pa.array([[{"role": "a", "content": "x"}], [{"role": "b", "content": "x"}]]),
    "named": pa.array(["x", "y", "x"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_cells_have_one_key_exactly_where_they_are_equal(name: str) -> None:
    column = COLUMNS[name]
    keys, plain = column_keys(pa.chunked_array([column])).tolist(), map(frozen, column.to_pylist())
    cells = list(plain)
    for one, first in zip(keys, cells, strict=True):
        for other, second in zip(keys, cells, strict=True):
            assert (one == other) == (first == second), (first, second)


def test_a_row_is_all_of_its_cells_in_their_order_but_for_the_answer() -> None:
    table = pa.table({"a": ["x", "y", "x"], "b": ["y", "x", "y"]})
    keys = table_keys(table)
    assert keys[0] == keys[2] != keys[1]
    asked = pa.table({"prompt": ["p", "p"], "answer": ["one", "two"]})
    assert len(set(table_keys(asked).tolist())) == 1


def test_targets_of_several_columns_and_tags_of_a_sentence_have_one_key() -> None:
    several = target_keys(np.array([[0, 1], [1, 0], [0, 1]]))
    assert several[0] == several[2] != several[1]
    tags = group_keys(target_keys(np.array([0, 1, 1, 0, 0, 1])), np.array([2, 2, 2]))
    assert tags[0] == tags[2] != tags[1]


# What is known of a task whose rows may have several labels before anything is trained.

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
