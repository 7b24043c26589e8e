"""Columns of numbers in which a few cells are none."""

from __future__ import annotations

import json
import math
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskmix.engine import FolderSource
from taskmix.errors import TaskFileError
from taskmix.tasks import TaskSet, load_tasks

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


def test_text_of_a_typed_file_stays_text_although_it_is_digits(tmp_path: Path) -> None:
    rows = [{"x": x, "label": place % 2} for place, x in enumerate(numbers(40))]
    jsonl(tmp_path / "train.jsonl", rows)
    (task,) = load_tasks(tmp_path)
    assert task.splits["train"].inputs.schema.field("x").type == pa.string()


# Which labels are one, and what is said about those that nearly are.


def load(tmp_path: Path, labels: list[str], dev: list[str] | None = None) -> TaskSet:
    for split, values in (("train", labels * 3), ("dev", dev or labels)):
        rows = "".join(f'{n % 4},"{label}"\n' for n, label in enumerate(values))
        (tmp_path / f"{split}.csv").write_text(f"x,label\n{rows}", encoding="utf-8")
    return load_tasks(tmp_path)


def test_numbers_written_differently_are_different_labels_with_a_note(tmp_path: Path) -> None:
    tasks = load(tmp_path, ["01", "1", "001", "2"])
    assert tasks[0].labels == ("001", "01", "1", "2")
    (note,) = tasks.notes
    assert "'001' and '01' and '1' are different labels" in note
    assert "they are equal as numbers" in note


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_whole_numbers_of_many_digits_are_not_rounded(tmp_path: Path, ending: str) -> None:
    labels = [2**63 + 1, 2**63 + 2, 2**53 + 1, 2**53]
    wanted = tuple(str(label) for label in sorted(labels))
    if ending == "csv":
        assert load(tmp_path, [str(label) for label in labels])[0].labels == wanted
        return
    for split in ("train", "dev"):
        if ending == "jsonl":
            rows = [{"x": 1, "label": label} for label in labels * 2]
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / f"{split}.jsonl").write_text(text)
        else:
            table = pa.table({"x": [1] * 4, "label": pa.array(labels, pa.uint64())})
            parquet.write_table(table, tmp_path / f"{split}.parquet")
    assert load_tasks(tmp_path)[0].labels == wanted


def test_a_file_that_writes_whole_numbers_with_a_point_is_one_of_whole_numbers(
    tmp_path: Path,
) -> None:
    tasks = load(tmp_path, ["1", "2"], dev=["1.0", "2.0"])
    assert tasks[0].labels == ("1", "2")
    assert "one of the files writes all its whole numbers with `.0`" in tasks.notes[0]
    assert load(tmp_path, ["1.0", "2.0"]).notes == ()
    # In one file both cannot come from a program that saw numbers.
    tasks = load(tmp_path, ["1", "1.0", "2"])
    assert tasks[0].labels == ("1", "1.0", "2")
    assert "equal as numbers" in tasks.notes[0]


def test_a_number_and_the_same_in_quotes_are_one_label_with_a_note(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"x": 1, "label": label} for label in (1, "1", 0, 1.0)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = load_tasks(tmp_path)
    assert tasks[0].labels == ("0", "1")
    assert "in quotes or not, a number is one label" in " ".join(tasks.notes)


def test_many_whole_numbers_are_noted_whichever_kind_they_make(tmp_path: Path) -> None:
    many = load(tmp_path, [str(n) for n in range(60)])
    assert (many[0].kind, len(many[0].labels)) == ("classification", 60)
    assert "was taken for 60 classes; `kind=...` says otherwise" in many.notes[0]
    others = load(tmp_path, [str(n) for n in range(5, 65)])
    assert others[0].kind == "regression"
    assert "`kind=...` says otherwise" in others.notes[0]


LETTERS = st.text(alphabet="aA1.0 \t\u00e9e\u0301\u00a0\u2003\u212b", min_size=1, max_size=5)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(one=LETTERS, other=LETTERS, as_json=st.booleans())
def test_two_spellings_are_one_class_exactly_if_they_are_equal_once_trimmed_and_composed(
    tmp_path: Path, one: str, other: str, as_json: bool
) -> None:
    def normal(text: str) -> str:
        return unicodedata.normalize("NFC", text.strip())

    if not normal(one) or not normal(other):
        return
    for path in tmp_path.iterdir():
        path.unlink()
    labels = [one, other, "word"]
    for split in ("train", "dev"):
        if as_json:
            lines = [json.dumps({"x": 1, "label": label}) for label in labels]
            (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
        else:
            lines = [f'1,"{label}"' for label in labels]
            text = "\n".join(["x,label", *lines, ""])
            (tmp_path / f"{split}.csv").write_bytes(text.encode())
    targets = load_tasks(tmp_path)[0].splits["train"].targets
    assert (targets[0] == targets[1]) == (normal(one) == normal(other))


def test_labels_that_differ_in_case_or_spaces_inside_are_noted(tmp_path: Path) -> None:
    tasks = load(tmp_path, ["Very good", "very  good", "bad"])
    assert len(tasks[0].labels) == 3
    assert "the same but for case or spaces" in tasks.notes[0]


def test_categories_of_features_are_trimmed_and_composed(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text("x,label\n red,a\nred ,b\ncafe\u0301,a\nblue,b\n")
    column = load_tasks(tmp_path)[0].splits["train"].inputs.column("x")
    assert column.to_pylist() == ["red", "red", "caf\u00e9", "blue"]
