"""Which labels are one, and what is said about those that nearly are."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskmix.tasks import TaskSet, load_tasks


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


def test_labels_that_differ_in_case_or_spaces_inside_are_noted(tmp_path: Path) -> None:
    tasks = load(tmp_path, ["Very good", "very  good", "bad"])
    assert len(tasks[0].labels) == 3
    assert "the same but for case or spaces" in tasks.notes[0]


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


def test_categories_of_features_are_trimmed_and_composed(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text("x,label\n red,a\nred ,b\ncafe\u0301,a\nblue,b\n")
    column = load_tasks(tmp_path)[0].splits["train"].inputs.column("x")
    assert column.to_pylist() == ["red", "red", "caf\u00e9", "blue"]


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
