"""What each column is taken for: dates become days, ids are left out, the rest is named."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import Question, load_tasks, tables_as_tasks
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


def test_a_column_that_cannot_be_read_is_refused_only_where_it_is_an_input() -> None:
    mixed = {"x": [1, 2] * 20, "odd": [[1], [2]] * 20, "label": ["a", "b"] * 20}
    other = {"x": [1, 2], "odd": ["one", "two"], "label": ["a", "b"]}
    tables = {"train": pa.table(mixed), "dev": pa.table(other)}
    with pytest.raises(TaskFileError, match="`odd` should be of one type"):
        tables_as_tasks({"a": tables})
    texts = {
        split: table.append_column("text", [[f"some words of row {n}" for n in range(len(table))]])
        for split, table in tables.items()
    }
    assert tables_as_tasks({"a": texts})["a"].inputs == "text"
