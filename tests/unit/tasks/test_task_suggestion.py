"""A column that looks like the task is suggested where one task was found, and hardly any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from taskmix.tasks import load_tasks

from .test_label_guess import table

COUNT = 300
GENERATOR = np.random.default_rng(0)
TEXTS = [f"the film number {n} was seen by us" for n in range(COUNT)]
LABELS = GENERATOR.choice(["good", "bad"], COUNT).tolist()
FIELDS = GENERATOR.choice(["physics", "biology", "law"], COUNT).tolist()
NUMBERS = GENERATOR.normal(size=COUNT).round(3).tolist()


def suggestions(path: Path, **how: object) -> list[str]:
    return [note for note in load_tasks(path, **how).notes if "did you mean" in note]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["field", "Domain", "PRODUCT", "source", "language", "genre", "dataset", "category"]
)
def test_a_column_that_is_called_like_tasks_is_suggested_beside_a_text(
    tmp_path: Path, name: str
) -> None:
    path = table(tmp_path, {"text": TEXTS, "label": LABELS, name: FIELDS, "who": NUMBERS})
    assert suggestions(path) == [f'1 task found; did you mean `task_column="{name}"` (3 values)?']
    assert suggestions(path, task_column=name) == []
    assert len(load_tasks(path, task_column=name)) == 3


def test_in_a_table_the_name_decides_and_a_school_may_be_a_number(tmp_path: Path) -> None:
    schools = GENERATOR.integers(1, 6, COUNT).tolist()
    path = table(tmp_path, {"x": NUMBERS, "school": schools, "label": LABELS})
    assert suggestions(path) == ['1 task found; did you mean `task_column="school"` (5 values)?']


def test_the_only_other_category_beside_a_text_is_suggested_whatever_its_name(
    tmp_path: Path,
) -> None:
    columns: dict[str, Sequence[object]] = {"text": TEXTS, "label": LABELS, "shelf": FIELDS}
    assert len(suggestions(table(tmp_path, columns))) == 1
    assert suggestions(table(tmp_path, {**columns, "shop": FIELDS[::-1]})) == []


NOT_TASKS: dict[str, dict[str, Sequence[object]]] = {
    "a feature of a table": {"x": NUMBERS, "colour": FIELDS},
    "a category of a table": {"x": NUMBERS, "category": FIELDS},
    "numbers of few values": {"x": NUMBERS, "product": GENERATOR.integers(0, 3, COUNT).tolist()},
    "yes and no": {"text": TEXTS, "source": GENERATOR.choice(["yes", "no"], COUNT).tolist()},
    "true and false": {
        "text": TEXTS,
        "source": GENERATOR.choice(["True", "False"], COUNT).tolist(),
    },
    "two values of another name": {"text": TEXTS, "asks": ["cause", "effect"] * (COUNT // 2)},
    "many values": {"text": TEXTS, "source": [f"page {n % 100}" for n in range(COUNT)]},
    "a rare value": {"text": TEXTS, "source": ["a"] * (COUNT - 2) + ["b", "c"]},
    "the label in other words": {"text": TEXTS, "field": [f"is {each}" for each in LABELS]},
    "a number beside a text": {"text": TEXTS, "votes": GENERATOR.integers(0, 5, COUNT).tolist()},
    "long words": {"text": TEXTS, "source": [f"{each} " * 12 for each in FIELDS]},
}


@pytest.mark.parametrize("case", NOT_TASKS)
def test_columns_that_name_no_tasks_are_not_suggested(tmp_path: Path, case: str) -> None:
    assert suggestions(table(tmp_path, {**NOT_TASKS[case], "label": LABELS})) == []


def test_nothing_is_suggested_where_there_are_several_tasks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = table(tmp_path / name, {"text": TEXTS, "label": LABELS, "field": FIELDS})
        path.rename(tmp_path / name / "train.csv")
    assert suggestions(tmp_path) == []
    path = table(tmp_path, {"text": TEXTS, "label": LABELS, "mood": LABELS[::-1], "field": FIELDS})
    assert suggestions(path, label=["label", "mood"]) == []
