"""Which columns are inputs: text by what it is, and no names or numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import Task, load_tasks

WORDS = ("the film was", "a book about", "we liked the", "nobody knows the", "in the old")


def sentences(count: int) -> list[str]:
    return [f"{WORDS[place % 5]} number {place} of them" for place in range(count)]


def table(tmp_path: Path, columns: dict[str, Sequence[object]], split: str = "train") -> None:
    count = len(next(iter(columns.values())))
    columns = {**columns, "label": ["ab"[place % 2] for place in range(count)]}
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]  # noqa: B905
    tmp_path.mkdir(parents=True, exist_ok=True)
    (tmp_path / f"{split}.csv").write_text("\n".join(rows) + "\n")


def features(task: Task) -> list[str]:
    names: list[str] = task.splits["train"].inputs.column_names
    return names


@pytest.mark.parametrize("name", ["Text", "TEXT", "Review", "sentence", "body", "what_they_said"])
def test_the_only_column_of_sentences_is_the_text_whatever_it_is_called(
    tmp_path: Path, name: str
) -> None:
    table(tmp_path, {name: sentences(40), "stars": [place % 5 for place in range(40)]})
    (task,) = load_tasks(tmp_path)
    assert (task.inputs, task.columns) == ("text", (name,))
    assert task.reading.left_out == (("stars", "beside the text"),)


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("hypothesis", "Premise"), ("Premise", "hypothesis")),
        (("sentence2", "sentence1"), ("sentence1", "sentence2")),
        (("text_a", "text_b"), ("text_a", "text_b")),
        (("Text2", "Text"), ("Text", "Text2")),
    ],
)
def test_two_columns_of_sentences_with_usual_names_are_a_pair(
    tmp_path: Path, names: tuple[str, str], order: tuple[str, str]
) -> None:
    table(tmp_path, {name: sentences(30) for name in names})
    (task,) = load_tasks(tmp_path)
    assert (task.inputs, task.columns) == ("pair", order)


def test_two_columns_of_sentences_that_are_no_pair_have_to_be_told_apart(tmp_path: Path) -> None:
    table(tmp_path, {"summary": sentences(30), "story": sentences(30)})
    with pytest.raises(TaskFileError, match=r"columns summary, story .*as text columns, or `text`"):
        load_tasks(tmp_path)
    assert load_tasks(tmp_path, text=["story"])[0].columns == ("story",)


def test_short_and_repeated_strings_stay_categories(tmp_path: Path) -> None:
    degrees = ["some college but no degree", "a degree of four years", "less than high school"]
    columns: dict[str, Sequence[object]] = {
        "education": [degrees[place % 3] for place in range(60)],
        "work": [("Self-emp-not-inc", "Private")[place % 2] for place in range(60)],
        "comment": [("very good", "not so good")[place % 2] for place in range(60)],
    }
    table(tmp_path, columns)
    (task,) = load_tasks(tmp_path)
    assert (task.inputs, features(task)) == ("table", ["education", "work", "comment"])


SHUFFLED = np.random.default_rng(0).permutation(40).tolist()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("who", [f"user-{place}" for place in range(39)] + ["user-0"]),
        ("n", list(range(40))),
        ("n", [place + 1 for place in SHUFFLED]),
        ("n", [f"{place}.0" for place in range(1, 41)]),
        ("at", list(range(5000, 5040))),
        ("id", [7 * place for place in SHUFFLED]),
        ("order_id", [10.5 * place for place in SHUFFLED]),
        ("PassengerId", [7 * place for place in SHUFFLED]),
        ("Unnamed: 0", [7 * place for place in SHUFFLED]),
    ],
)
def test_names_and_numbers_of_rows_are_no_features(
    tmp_path: Path, name: str, values: list[object]
) -> None:
    table(tmp_path, {name: values, "x": [place % 7 for place in range(40)]})
    tasks = load_tasks(tmp_path)
    assert features(tasks[0]) == ["x"]
    assert any(f"`{name}`" in note and "was left out" in note for note in tasks.notes)
    assert [column for column, _ in tasks[0].reading.left_out] == [name]
    assert features(load_tasks(tmp_path, features=[name, "x"])[0]) == [name, "x"]


def test_row_numbers_that_begin_afresh_in_every_file_are_no_features(tmp_path: Path) -> None:
    for split, count in (("train", 30), ("dev", 12)):
        columns = {"n": list(range(count)), "id": [9 * place for place in range(count)]}
        table(tmp_path, {**columns, "x": [place % 7 for place in range(count)]}, split)
    assert features(load_tasks(tmp_path)[0]) == ["x"]


def test_measurements_that_happen_to_differ_stay(tmp_path: Path) -> None:
    columns: dict[str, Sequence[object]] = {
        "weight": np.random.default_rng(1).normal(size=40).tolist(),
        "income": [1000 + 37 * place for place in SHUFFLED],
        "group_id": [place % 4 for place in range(40)],
        "grid": [7 * place for place in SHUFFLED],
    }
    table(tmp_path, columns)
    assert features(load_tasks(tmp_path)[0]) == [*columns]


def test_a_table_of_names_alone_is_refused_with_the_reason(tmp_path: Path) -> None:
    table(tmp_path, {"n": list(range(40))})
    with pytest.raises(TaskFileError, match=r"`n`: numbers the rows.*`features`"):
        load_tasks(tmp_path)


def test_categories_that_train_does_not_have_are_noted_with_the_first(tmp_path: Path) -> None:
    table(tmp_path, {"x": ["red", "blue"] * 10})
    table(tmp_path, {"x": ["red", "green", "pink", "green"]}, "dev")
    (note,) = load_tasks(tmp_path).notes
    assert "`x`: 3 rows outside train have values that train does not have" in note
    assert "the first is 'green' in dev.csv, line 3" in note
