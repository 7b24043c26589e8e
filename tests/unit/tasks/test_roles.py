"""What each column is taken for: dates become days, ids are left out, the rest is named."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import Question, Task, load_tasks
from taskmix.tasks._columns._dates import dates_of
from taskmix.tasks._columns._roles import role_of
from taskmix.tasks._columns._stack import StackedFiles
from taskmix.tasks._formats._readers import Rows


def stacked(*columns: dict[str, list[object]], typed: bool = False) -> StackedFiles:
    kind = "parquet" if typed else "csv"
    return StackedFiles(
        {
            str(place): Rows(pa.table(each), Path(f"{place}.{kind}"), kind, typed=typed)  # type: ignore[arg-type]
            for place, each in enumerate(columns)
        }
    )


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["1970-01-02", "1970-02-01"], [1.0, 31.0]),
        (["1970-01-02T12:00:00Z", "1970-01-03 06:00"], [1.5, 2.25]),
        (["1970/01/02", "1970/1/3"], [1.0, 2.0]),
        (["02.01.1970", "31.01.1970 18:00"], [1.0, 30.75]),
        (["1/2/1970", "01/31/1970"], [1.0, 30.0]),
        (["1/2/1970 6:00 PM", "1/2/1970 12:00 AM"], [1.75, 1.0]),
        (["2 Jan 1970", "03-January-1970"], [1.0, 2.0]),
        (["Jan 2, 1970", "February 1 1970"], [1.0, 31.0]),
        (["2000-02-29", "1969-12-31"], [11016.0, -1.0]),
    ],
)
def test_dates_are_days_since_1970_however_they_are_written(
    cells: list[object], days: list[float]
) -> None:
    found = dates_of(stacked({"when": cells}), "when")
    assert found is not None
    assert found.days.to_pylist() == days


@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.3", "1.2.4"],  # versions
        ["2021-02-30", "2021-13-01"],  # days that no calendar has
        ["1999", "2000"],
        ["12:30", "13:45"],
        ["2021-01-01", "soon", "later", "never"],
        ["555-12-3456", "555-12-3457"],
    ],
)
def test_what_only_looks_a_little_like_a_date_is_none(cells: list[object]) -> None:
    assert dates_of(stacked({"when": cells}), "when") is None


def test_dates_may_be_missing_and_a_few_cells_may_be_none() -> None:
    cells: list[object] = ["2021-01-01"] * 40 + ["", "NA", "unknown"]
    found = dates_of(stacked({"when": cells}), "when")
    assert found is not None
    assert (found.others, found.days.null_count, found.first) == (1, 3, "2021-01-01")


def test_types_of_dates_and_times_are_dates_and_text_in_another_file_is_read_with_them() -> None:
    train: dict[str, list[object]] = {
        "a": [datetime.date(1970, 1, 2)],
        "b": [datetime.datetime(1970, 1, 2, 12)],
        "c": [datetime.time(3)],
    }
    dev: dict[str, list[object]] = {
        "a": ["1970-01-05"],
        "b": [None],
        "c": [datetime.time(4)],
    }
    stack = stacked(train, dev, typed=True)
    for name, days in (("a", [1.0, 4.0]), ("b", [1.5, None])):
        found = dates_of(stack, name)
        assert found is not None
        assert found.days.to_pylist() == days
    assert role_of(stack, "c").kind == "other"


def rows_with_dates(dates: list[str]) -> str:
    rows = [f"{date},{place % 7},{'ab'[place % 2]}" for place, date in enumerate(dates)]
    return "\n".join(["day,x,label", *rows]) + "\n"


def test_a_date_is_a_number_of_the_table_and_a_note_says_from_when_to_when(tmp_path: Path) -> None:
    days = [f"2021-{1 + place % 12:02}-{1 + place % 28:02}" for place in range(400)]
    (tmp_path / "train.csv").write_text(rows_with_dates(days))
    tasks = load_tasks(tmp_path)
    column = tasks[0].splits["train"].inputs.column("day")
    assert pa.types.is_floating(column.type)
    (note,) = (each for each in tasks.notes if "`day`" in each)
    assert "holds dates from 2021-01-01 to 2021-12-28, written as year-month-day" in note
    assert "`ignore=...` leaves it out" in note
    assert load_tasks(tmp_path, ignore="day")[0].reading.columns == ("x",)


def test_new_rows_have_their_dates_read_as_those_of_training(tmp_path: Path) -> None:
    days = [f"2021-03-{1 + place % 28:02}" for place in range(60)]
    (tmp_path / "train.csv").write_text(rows_with_dates(days))
    question = Question.of(load_tasks(tmp_path)[0])
    learned = {"columns": [{"name": "day", "kind": "_Number"}, {"name": "x", "kind": "_Number"}]}
    inputs, notes = question.read([{"day": "1970-01-11", "x": 1}], learned)
    assert inputs.to_pydict() == {"day": [10.0], "x": [1]}
    assert notes == ()


def test_days_before_a_slash_are_left_out_because_a_single_row_would_not_tell(
    tmp_path: Path,
) -> None:
    days = [f"{1 + place % 28:02}/03/2021" for place in range(60)]
    (tmp_path / "train.csv").write_text(rows_with_dates(days))
    tasks = load_tasks(tmp_path)
    assert tasks[0].reading.columns == ("x",)
    assert any("written as day/month/year, and was left out" in note for note in tasks.notes)


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("x", [0.5, 1.5, 2.5, 0.5], "number"),
        ("x", ["a", "b", "b", "a"], "category"),
        ("x", [True, False, True, True], "truth"),
        ("x", [["a"], ["b"], [], ["a"]], "list"),
        ("x", [[["a"]], [["b"]], [], [["a"]]], "lists"),
        ("x", [{"role": "a"}, {"role": "b"}, {"role": "a"}, None], "other"),
        ("x", ["same"] * 4, "constant"),
        ("x", [7, 7, 7, 7], "constant"),
        ("x", [None] * 4, "empty"),
        ("x", ["", " ", "", ""], "category"),
        ("id", [7, 3, 9, 4], "id"),
        ("Text", [f"this is sentence number {n}" for n in range(4)], "text"),
    ],
)
def test_every_column_is_of_one_kind(name: str, cells: list[object], kind: str) -> None:
    assert role_of(stacked({name: cells}, typed=True), name).kind == kind


def test_an_id_that_differs_in_most_rows_is_left_out_and_groups_are_not(tmp_path: Path) -> None:
    names = ("patient_id", "room_id", "body_mass_index")
    rows = [
        f"{1000 + 37 * (place // 2)},{place % 4},{20 + 0.37 * place:.2f},{'ab'[place % 3 % 2]}"
        for place in range(60)
    ]
    (tmp_path / "train.csv").write_text(",".join((*names, "label")) + "\n" + "\n".join(rows) + "\n")
    tasks = load_tasks(tmp_path)
    assert tasks[0].reading.left_out == (("patient_id", "differs in most rows"),)
    assert tasks[0].reading.columns == ("room_id", "body_mass_index")
    kept = load_tasks(tmp_path, features=["patient_id", "room_id"])
    assert kept[0].reading.columns == ("patient_id", "room_id")


# Which columns are inputs: text by what it is, and no names or numbers of rows.

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


def test_categories_that_train_does_not_have_are_noted_with_the_first(tmp_path: Path) -> None:
    table(tmp_path, {"x": ["red", "blue"] * 10})
    table(tmp_path, {"x": ["red", "green", "pink", "green"]}, "dev")
    (note,) = load_tasks(tmp_path).notes
    assert "`x`: 3 rows outside train have values that train does not have" in note
    assert "the first is 'green' in dev.csv, line 3" in note
