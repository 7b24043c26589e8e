"""A label column of another name is taken where only one can be meant, and asked for otherwise."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import load_tasks

COUNT = 60
TEXTS = [f"the film number {n} was seen by us" for n in range(COUNT)]
STARS = [1 + n % 5 for n in range(COUNT)]
PRODUCTS = [("books", "music", "toys")[n % 3] for n in range(COUNT)]
DAYS = [f"2021-03-{1 + n % 28:02}" for n in range(COUNT)]
NUMBERS = [0.5 * (n % 13) for n in range(COUNT)]


def table(folder: Path, columns: dict[str, Sequence[object]]) -> Path:
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return folder / "rows.csv"


@pytest.mark.parametrize("name", ["target", "Class", "Y", " LABELS ", "gold_label", "outcome"])
def test_a_usual_name_is_taken_in_a_table_and_said(tmp_path: Path, name: str) -> None:
    tasks = load_tasks(table(tmp_path, {"x": NUMBERS, name: PRODUCTS}))
    assert tasks[0].reading.label is not None
    assert tasks[0].reading.label.strip() == name.strip()
    assert any("was taken for the label" in note for note in tasks.notes)
    assert any("`label=...` names another" in note for note in tasks.notes)


def test_the_only_column_beside_text_ids_and_dates_is_the_label(tmp_path: Path) -> None:
    columns = {"id": range(COUNT), "day": DAYS, "review": TEXTS, "opinion": STARS}
    tasks = load_tasks(table(tmp_path, columns))
    assert (tasks[0].columns, tasks[0].reading.label) == (("review",), "opinion")
    assert any("as it is the only column beside the text" in n for n in tasks.notes)


def test_a_column_called_like_a_task_is_set_aside(tmp_path: Path) -> None:
    tasks = load_tasks(table(tmp_path, {"product": PRODUCTS, "review": TEXTS, "opinion": STARS}))
    assert tasks[0].reading.label == "opinion"
    named = load_tasks(
        table(tmp_path, {"shop": PRODUCTS, "review": TEXTS, "opinion": STARS}), task_column="shop"
    )
    assert {task.reading.label for task in named} == {"opinion"}


@pytest.mark.parametrize(
    "columns",
    [
        {"review": TEXTS, "opinion": STARS, "mood": PRODUCTS},  # either may be meant
        {"review": TEXTS, "sentiment": STARS, "rating": STARS},
        {"x": NUMBERS, "target": STARS, "class": PRODUCTS},
        {"x": NUMBERS, "rating": STARS},  # in a table a rating may be a feature
        {"x": NUMBERS, "opinion": STARS},
    ],
)
def test_two_candidates_are_a_question_that_lists_the_columns(
    tmp_path: Path, columns: dict[str, Sequence[object]]
) -> None:
    with pytest.raises(TaskFileError, match="There should be a column named label") as found:
        load_tasks(table(tmp_path, columns))
    assert all(f"`{name}` (" in str(found.value) for name in columns)
    assert str(found.value).endswith("Name the column with `label`.")
    assert found.value.arguments == ("label",)
    assert load_tasks(tmp_path / "rows.csv", label=list(columns)[-1])


def test_columns_that_were_said_to_be_something_else_are_no_candidates(tmp_path: Path) -> None:
    path = table(tmp_path, {"review": TEXTS, "opinion": STARS, "mood": PRODUCTS})
    assert load_tasks(path, ignore="mood")[0].reading.label == "opinion"
    assert load_tasks(path, task_column="mood")[0].reading.label == "opinion"
