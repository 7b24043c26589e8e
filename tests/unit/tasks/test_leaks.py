"""Labels in the inputs: found in each draw, and nowhere else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from taskmix.tasks import Task, TaskSet, digits_tasks, look_at, tables_as_tasks

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


def test_the_finding_says_what_to_think_of_the_score() -> None:
    task = text_task(["no", "yes"], "last", seed=3)
    (finding,) = (each for each in look_at(TaskSet((task,))) if each.kind == "leak")
    assert finding.tasks == ("a",)
    assert "its score says nothing of the task itself" in finding.words
    assert finding.is_warning
    assert not any(each.kind == "leak" for each in look_at(digits_tasks()))
