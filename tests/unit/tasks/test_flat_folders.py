"""Folders with one file for each task, and names that differ in case."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from taskmix.errors import InputError, TaskFileError
from taskmix.tasks import Question, load_tasks

TABLE = "text,label\n" + "".join(f"a film number {n} ok,{'ab'[n % 2]}\n" for n in range(20))


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(TABLE)
    return folder


def test_only_the_files_asked_for_are_read(tmp_path: Path) -> None:
    write(tmp_path, "books.csv", "dvd.csv")
    (tmp_path / "dvd.csv").write_text("text,label\nonly one cell\n")
    assert load_tasks(tmp_path, tasks="books").names == ("books",)
    with pytest.raises(InputError, match="Found books, dvd"):
        load_tasks(tmp_path, tasks="music")


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (("books_train", "books_test"), {"books": ["train", "test"]}),
        (("train.books", "dev.books"), {"books": ["train", "dev"]}),
        (("a-b_Train", "a-b VALID"), {"a-b": ["train", "dev"]}),
        (("train", "test_a", "test_b"), {"tasks": ["train"]}),
        (("retrain", "contest"), {"contest": ["train"], "retrain": ["train"]}),
    ],
)
def test_tasks_and_splits_are_found_in_names(
    tmp_path: Path, names: tuple[str, ...], groups: dict[str, list[str]]
) -> None:
    tasks = load_tasks(write(tmp_path / "tasks", *(f"{name}.csv" for name in names)))
    found = {task.name: set(task.splits) for task in tasks}
    assert set(found) == set(groups)
    assert all(found[name] >= set(splits) for name, splits in groups.items())


def test_two_files_of_one_stem_get_a_sentence(tmp_path: Path) -> None:
    write(tmp_path, "books.csv", "dvd.csv")
    (tmp_path / "books.jsonl").write_text('{"text": "a b", "label": "c"}\n')
    with pytest.raises(TaskFileError, match="should have different names"):
        load_tasks(tmp_path)


def test_a_metadata_file_beside_several_tables_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "books.csv", "dvd.csv")
    (tmp_path / "dataset_info.json").write_text('{"name": "films", "rows": 40}')
    tasks = load_tasks(tmp_path)
    assert tasks.names == ("books", "dvd")
    assert any("left alone: dataset_info.json" in note for note in tasks.notes)


@pytest.mark.parametrize(
    ("header", "wanted", "found"),
    [
        ("LABEL,label,Label", "label", "label"),
        ("x,\ufeffKind\u00a0", "kind", "\ufeffKind\u00a0"),
        ("x,Straße", "STRASSE", "Straße"),
        ("x,e\u0301", "É", "e\u0301"),
    ],
)
def test_the_exact_name_wins_and_case_does_not_matter(
    tmp_path: Path, header: str, wanted: str, found: str
) -> None:
    names = header.split(",")
    rows = [
        ",".join("ab"[n % 2] if name == found else str(n * n % 7) for name in names)
        for n in range(20)
    ]
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    assert load_tasks(tmp_path / "a.csv", label=wanted)[0].labels == ("a", "b")
    (tmp_path / "a.csv").write_text("\n".join(["x,Label,LABEL", "1,a,a"]) + "\n")
    with pytest.raises(InputError, match="'Label' and 'LABEL'"):
        load_tasks(tmp_path / "a.csv", label="label")


def test_new_rows_may_write_the_names_in_another_case(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n * n % 7},{'ab'[n % 2]}\n" for n in range(40))
    (tmp_path / "a.csv").write_text(f"Age,z,label\n{rows}")
    question = Question.of(load_tasks(tmp_path / "a.csv", features=["age", "Z"])["a"])
    assert question.columns == ("Age", "z")
    table, _ = question.read(pa.table({"AGE": [3], "Z": [4]}))
    assert table.to_pydict() == {"Age": [3], "z": [4]}
    (tmp_path / "new.csv").write_text("AGE;Z\n3;4\n")
    table, notes = question.read(tmp_path / "new.csv")
    assert table.to_pydict() == {"Age": [3], "z": [4]}
    assert "separated by semicolons" in notes[0]


def test_one_sentence_is_for_all_files_it_holds_for(tmp_path: Path) -> None:
    for name in ("books", "dvd"):
        write(tmp_path, f"{name}/train.csv")
        (tmp_path / name / "train.csv").write_text(TABLE.replace(",", ";"))
    notes = load_tasks(tmp_path).notes
    said = (
        "Each of 2 files (books/train.csv, dvd/train.csv) is separated by semicolons, not commas."
    )
    assert said in notes
