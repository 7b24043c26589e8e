"""Columns of numbers in which a few cells are none."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from taskmix.engine import FolderSource
from taskmix.errors import TaskFileError
from taskmix.tasks import load_tasks, rows_by_task

ODD = "n/k"


def numbers(count: int) -> list[str]:
    """Distinct enough, and no count of rows."""
    return [str((7 * place) % 13 - 6) for place in range(count)]


def csv(path: Path, xs: list[str], header: str = "x,y,label") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{x},{place % 5},{'ab'[place % 2]}\n" for place, x in enumerate(xs))
    path.write_text(f"{header}\n{rows}")
    return path


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_one_word_among_numbers_is_missing_and_noted(tmp_path: Path) -> None:
    csv(tmp_path / "train.csv", numbers(60))
    csv(tmp_path / "dev.csv", [*numbers(9), ODD])
    tasks = load_tasks(tmp_path)
    assert tasks[0].splits["train"].inputs.schema.field("x").type == pa.int64()
    assert tasks[0].splits["dev"].inputs.column("x").to_pylist()[-1] is None
    (note,) = tasks.notes
    assert "`x` has 69 numbers and 1 other cell, counted as missing" in note
    assert "the first is 'n/k' in dev.csv, line 11" in note


@pytest.mark.parametrize(("odd", "kind"), [(1, "number"), (2, "text")])
def test_nineteen_numbers_outvote_one_word_and_no_more(tmp_path: Path, odd: int, kind: str) -> None:
    csv(tmp_path / "train.csv", [*numbers(20 - odd), *[ODD] * odd])
    csv(tmp_path / "dev.csv", [""])
    tasks = load_tasks(tmp_path)
    found = tasks[0].splits["train"].inputs.schema.field("x").type
    assert found == (pa.int64() if kind == "number" else pa.string())
    words = "counted as missing" if kind == "number" else "so all were read as categories"
    assert words in " ".join(tasks.notes)


def test_json_lines_and_other_formats_are_read_like_csv(tmp_path: Path) -> None:
    values: list[Any] = [int(x) for x in numbers(40)]
    rows = [{"x": x, "label": "ab"[place % 2]} for place, x in enumerate(values)]
    jsonl(tmp_path / "train.jsonl", [*rows, {"x": ODD, "label": "a"}])
    (tmp_path / "dev.csv").write_text("x,label\n3,a\nunknown,b\n")
    parquet.write_table(pa.table({"x": ["4", "5"], "label": ["a", "b"]}), tmp_path / "test.parquet")
    tasks = load_tasks(tmp_path)
    (task,) = tasks
    assert task.splits["train"].inputs.column("x").to_pylist() == [*values, None]
    assert task.splits["dev"].inputs.column("x").to_pylist() == [3, None]
    assert task.splits["test"].inputs.column("x").to_pylist() == [4, 5]
    assert "2 other cells, counted as missing; the first is 'n/k' in train.jsonl, line 41" in (
        " ".join(tasks.notes)
    )


def test_text_of_a_typed_file_stays_text_although_it_is_digits(tmp_path: Path) -> None:
    rows = [{"x": x, "label": place % 2} for place, x in enumerate(numbers(40))]
    jsonl(tmp_path / "train.jsonl", rows)
    (task,) = load_tasks(tmp_path)
    assert task.splits["train"].inputs.schema.field("x").type == pa.string()


def test_strict_reading_refuses_the_cell_and_names_it(tmp_path: Path) -> None:
    csv(tmp_path / "t" / "train.csv", numbers(60))
    path = csv(tmp_path / "t" / "dev.csv", [*numbers(9), ODD])
    for load in (
        lambda: load_tasks(tmp_path, strict=True),
        FolderSource(path=str(tmp_path), strict=True).load,
    ):
        with pytest.raises(TaskFileError, match="'n/k'") as caught:
            load()
        assert (caught.value.path, caught.value.row) == (path, 11)
    rows: list[dict[str, Any]] = [{"x": place % 9, "label": "a"} for place in range(30)]
    jsonl(tmp_path / "j" / "train.jsonl", [*rows, {"x": ODD, "label": "b"}])
    with pytest.raises(TaskFileError, match=r"'n/k' in .*train.jsonl, line 31"):
        load_tasks(tmp_path / "j", strict=True)


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_a_regression_never_becomes_classes_because_of_a_word(tmp_path: Path, share: float) -> None:
    odd = int(100 * share)
    targets = [f"{place / 7:.3f}" for place in range(100 - odd)] + [ODD] * odd
    rows = "".join(f"{place % 7},{y}\n" for place, y in enumerate(targets))
    path = tmp_path / "train.csv"
    path.write_text(f"x,label\n{rows}")
    with pytest.raises(TaskFileError, match="'n/k'") as caught:
        load_tasks(tmp_path, strict=True)
    assert caught.value.row == 102 - odd
    assert caught.value.path == path
    if share < 0.05:
        tasks = load_tasks(tmp_path)
        assert tasks[0].kind == "regression"
        assert "2 of 100 rows have no number as `label` ('n/k')" in " ".join(tasks.notes)


def test_a_word_among_class_numbers_is_a_class_and_noted(tmp_path: Path) -> None:
    rows = "".join(f"{place % 7},{place % 3 + 9}\n" for place in range(98))
    (tmp_path / "train.csv").write_text(f"x,label\n{rows}1,unknown\n2,unknown\n")
    tasks = load_tasks(tmp_path)
    assert tasks[0].labels == ("9", "10", "11", "unknown")
    assert "'unknown' in train.csv, line 100 (2 such rows)" in " ".join(tasks.notes)


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan, "1e400"])
def test_a_column_whose_first_cell_is_no_finite_number_is_read_from_everywhere(
    tmp_path: Path, odd: float | str
) -> None:
    cells: list[Any] = [odd, *(place % 9 + 0.5 for place in range(39))]
    columns = {"x": cells, "y": [place % 7 for place in range(40)], "label": [0, 1] * 20}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = jsonl(tmp_path / "rows.jsonl", rows)
    lines.write_text(lines.read_text().replace('"1e400"', "1e400"))
    sources = [csv(tmp_path / "rows.csv", list(map(str, cells))), lines]
    for source in (*sources, columns | {"x": [float(cell) for cell in cells]}):
        task = load_tasks(source, label="label")[0]
        assert task.splits["train"].inputs.column_names[:2] == ["x", "y"]


def test_infinite_names_of_tasks_are_those_of_the_rows_that_were_kept(tmp_path: Path) -> None:
    rows = [{"task": [math.inf, 1][n // 20], "seq": n // 4, "t": n % 4, "x": n} for n in range(40)]
    path = jsonl(tmp_path / "rows.jsonl", rows)
    tasks = load_tasks(path, task_column="task", sequence_column="seq", time_column="t")
    assert [(task.name, task.size) for task in tasks] == [("1.0", 3), ("inf", 3)]
    found = {task: part for task, (_, part) in rows_by_task(path, "task").items()}
    assert rows_by_task(found["inf"], "task")["inf"][0] == list(range(20))
