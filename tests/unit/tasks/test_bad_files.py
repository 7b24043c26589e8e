"""Whatever is wrong with a task file, the answer is one sentence with file, row and remedy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskmix.errors import InputError, TaskFileError
from taskmix.tasks import TaskSet, load_tasks

GOOD = [{"text": f"row {n}", "label": "ab"[n % 2]} for n in range(10)]


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def error_of(source: Path, path: Path | None, row: int | None, **options: Any) -> str:
    with pytest.raises(TaskFileError) as caught:
        load_tasks(source, **options)
    error, sentence = caught.value, str(caught.value)
    assert (error.path, error.row) == (path, row)
    assert path is None or str(path) in sentence
    assert row is None or f"row {row}" in sentence
    assert "should" in sentence
    assert "Found" in sentence
    assert sentence.isprintable()
    return sentence


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", GOOD)
    path = jsonl(tmp_path / "dev.jsonl", [{"text": "x", "lable": 1}])
    assert "column `label`. Found the columns text, lable" in error_of(tmp_path, path, None)
    path.unlink()
    train = tmp_path / "train.jsonl"
    assert "column `x`" in error_of(tmp_path, train, None, label=["x"])
    assert "column `y`" in error_of(tmp_path, train, None, text=["y"])
    assert "column `z`" in error_of(tmp_path, train, None, task_column="z")


@pytest.mark.parametrize("split", ["dev", "test", "dev_hard"])
def test_a_label_that_train_does_not_have_is_named(tmp_path: Path, split: str) -> None:
    jsonl(tmp_path / "train.jsonl", GOOD)
    jsonl(tmp_path / "dev.jsonl", GOOD)
    path = jsonl(tmp_path / f"{split}.jsonl", [*GOOD, {"text": "x", "label": "c"}])
    sentence = error_of(tmp_path, path, 11)
    assert "Found 'c'" in sentence
    assert "which has 'a', 'b'" in sentence
    (task,) = load_tasks(tmp_path, extend_labels=True)
    assert task.labels == ("a", "b", "c")


def test_a_new_label_is_accepted_where_train_has_labels_that_occur_once(tmp_path: Path) -> None:
    many = [{"text": "x", "label": "ab"[n % 2]} for n in range(100)]
    jsonl(tmp_path / "dev.jsonl", [{"text": "x", "label": "new"}])
    train = jsonl(tmp_path / "train.jsonl", many)
    dev = tmp_path / "dev.jsonl"
    error_of(tmp_path, dev, 1)
    jsonl(train, [*many, {"text": "x", "label": "once"}])
    tasks = load_tasks(tmp_path)
    assert tasks[0].labels == ("a", "b", "new", "once")
    assert "no row of train has ('new')" in tasks.notes[0]
    error_of(tmp_path, dev, 1, extend_labels=False)
    # Numbers are places in a list of classes, and a new one is a slip.
    jsonl(train, [{"text": "x", "label": n % 2 if n else 9} for n in range(200)])
    jsonl(dev, [{"text": "x", "label": 3}])
    error_of(tmp_path, dev, 1)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "conll", "txt", "jsonl.gz"])
def test_an_empty_split_is_refused(tmp_path: Path, ending: str) -> None:
    jsonl(tmp_path / "train.jsonl", GOOD)
    path = tmp_path / f"dev.{ending}"
    path.write_bytes(gzip.compress(b"") if ending.endswith("gz") else b"")
    assert "A split should have rows" in error_of(tmp_path, path, None)


@pytest.mark.parametrize(
    "bad", [{"text": "x", "label": None}, {"text": "x"}, {"text": "x", "label": ""}]
)
def test_a_row_without_a_label_is_named_and_refused_by_strict(
    tmp_path: Path, bad: dict[str, Any]
) -> None:
    path = jsonl(tmp_path / "train.jsonl", [*GOOD, bad])
    assert "`label`" in error_of(tmp_path, path, 11, strict=True)
    tasks = load_tasks(tmp_path)
    assert sum(tasks[0].sizes.values()) == 10
    said = "1 of 11 rows has no `label` and was left out; the first is train.jsonl, row 11"
    assert said in " ".join(tasks.notes)
    jsonl(path, [{"text": "x", "label": 0.5}, {"text": "x", "label": None}])
    assert "Found nothing" in error_of(tmp_path, path, 2, strict=True)


@pytest.mark.parametrize("bad", [None, 5, ["x"], {"a": 1}])
def test_a_row_without_text_is_named(tmp_path: Path, bad: Any) -> None:
    path = jsonl(tmp_path / "train.jsonl", [*GOOD[:3], {"text": bad, "label": "a"}])
    with pytest.raises(TaskFileError) as caught:
        load_tasks(tmp_path, strict=True)
    assert "`text`" in str(caught.value)
    assert caught.value.path == path
    assert "row 4" in str(caught.value)


def test_text_that_is_never_there_is_refused_and_some_empty_rows_are_not(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "train.jsonl", [{**row, "text": " "} for row in GOOD])
    assert "should have words in some rows" in error_of(tmp_path, path, 1)
    jsonl(path, [{**GOOD[0], "text": ""}, *GOOD])
    assert len(load_tasks(tmp_path)) == 1


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "1e999"])
def test_a_target_that_is_not_finite_is_named(tmp_path: Path, number: str) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(f'{{"text": "x", "label": 0.5}}\n{{"text": "x", "label": {number}}}\n')
    assert "finite" in error_of(tmp_path, path, 2)


def test_words_where_numbers_should_be_are_named(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("x,label\n1,2.5\n2,high\n")
    assert "Found 'high'" in error_of(tmp_path, path, 3, kind="regression")


def test_true_beside_numbers_is_refused(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "train.jsonl", [{"text": "x", "label": 1}, {"text": "x", "label": True}]
    )
    sentence = error_of(tmp_path, path, None)
    assert "Found true or false in row 2 (True) and a number in row 1" in sentence
    jsonl(path, [{"text": "x", "label": 1}, {"text": "x", "label": 0}])
    dev = jsonl(tmp_path / "dev.jsonl", [{"text": "x", "label": True}])
    assert "true or false beside numbers in train.jsonl" in error_of(tmp_path, dev, None)


def test_tags_need_tokens(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "train.jsonl", [{"text": "x", "label": ["a", "b"]}])
    assert "Tags should stand beside `tokens`" in error_of(tmp_path, path, 1, kind="tagging")
    assert "as a label" in error_of(tmp_path, path, 1, kind="classification")


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        ({"tokens": ["a", "b"], "slots": ["O"]}, "1 tags beside 2 tokens"),
        ({"tokens": ["a"], "slots": None}, "nothing"),
        ({"tokens": None, "slots": ["O"]}, "nothing"),
        ({"tokens": ["a"], "slots": [None]}, "None"),
        ({"tokens": [None], "slots": ["O"]}, "None"),
        ({"tokens": [], "slots": []}, "an empty list"),
        ({"tokens": ["a\0"], "slots": ["O"]}, r"'a\x00'"),
        ({"tokens": ["a"], "slots": [""]}, "''"),
        ({"tokens": ["a"], "slots": ["O\0"]}, r"'O\x00'"),
    ],
)
def test_a_bad_list_of_tags_is_named(tmp_path: Path, bad: dict[str, Any], found: str) -> None:
    good = {"tokens": ["a", "b"], "slots": ["O", "O"]}
    path = jsonl(tmp_path / "train.jsonl", [good, bad])
    jsonl(tmp_path / "dev.jsonl", [good])
    assert f"Found {found}" in error_of(tmp_path, path, 2)


def test_a_nul_that_is_escaped_is_refused_too(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "train.jsonl", [*GOOD, {"text": "a\0b", "label": "a"}])
    assert "NUL" in error_of(tmp_path, path, 11)
    jsonl(path, [*GOOD, {"text": "x", "label": "a\0"}])
    assert "NUL" in error_of(tmp_path, path, 11)


def test_two_files_for_one_split_are_refused(tmp_path: Path) -> None:
    jsonl(tmp_path / "a" / "train.jsonl", GOOD)
    (tmp_path / "a" / "train.csv.gz").write_bytes(gzip.compress(b"text,label\nx,a\n"))
    sentence = error_of(tmp_path, tmp_path / "a", None)
    assert "two, train.csv.gz and train.jsonl," in sentence
    (tmp_path / "a" / "train.csv.gz").unlink()
    jsonl(tmp_path / "a" / "dev.jsonl", GOOD)
    jsonl(tmp_path / "a" / "valid.jsonl", GOOD)
    assert "two, dev.jsonl and valid.jsonl," in error_of(tmp_path, tmp_path / "a", None)


def test_a_folder_called_like_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / "train.jsonl").mkdir(parents=True)
    error_of(tmp_path, tmp_path / "a" / "train.jsonl", None)


def test_a_folder_without_tasks_and_a_path_to_nothing_are_refused(tmp_path: Path) -> None:
    assert "Found none of these" in error_of(tmp_path, tmp_path, None)
    (tmp_path / "README.txt").write_text("hello")
    assert "Found none of these" in error_of(tmp_path, tmp_path, None)
    nowhere = tmp_path / "nowhere.csv"
    assert "no such file" in error_of(nowhere, nowhere, None)
    folder = tmp_path / "nowhere"
    assert "Found nothing" in error_of(folder, folder, None)


def test_a_row_without_a_task_is_left_out_or_refused_by_strict(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task,x,label\na,1,0\n,1,0\n")
    assert "Every row should have `task`" in error_of(tmp_path, path, 3, strict=True)
    assert "1 of 2 rows has no `task` and was left out" in " ".join(load_tasks(tmp_path).notes)
    jsonl(tmp_path / "u" / "t.jsonl", [{"task": "a", "x": 1, "label": 0}, {"x": 1, "label": 0}])
    error_of(tmp_path / "u", tmp_path / "u" / "t.jsonl", 2, strict=True)
    jsonl(tmp_path / "v" / "t.jsonl", [{"task": ["a"], "x": 1, "label": 0}])
    error_of(tmp_path / "v", tmp_path / "v" / "t.jsonl", 1)


def test_a_table_without_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task,label\na,1\n")
    assert "at least one column beside the target" in error_of(tmp_path, path, None)


def test_features_of_different_types_in_two_splits_are_refused(tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", [{"x": 1, "label": 0}, {"x": 2, "label": 1}])
    path = jsonl(tmp_path / "dev.jsonl", [{"x": [1], "label": 0}])
    assert "lists beside numbers in train.jsonl" in error_of(tmp_path, path, None)


@pytest.mark.parametrize(
    "row", ['{"text": "x", "label": 1, "label": 2}', '{"a": {"b": 1, "b": 1}}']
)
def test_a_key_that_comes_twice_is_refused_with_its_row(tmp_path: Path, row: str) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text('{"text": "x", "label": 1}\n' + row + "\n")
    assert "each key once. Found '" in error_of(tmp_path, path, 2)


def test_conll_names_have_to_fit_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "train.conll"
    path.write_text("a\tX\tO\n")
    sentence = error_of(tmp_path, path, None, columns=["token", "pos"])
    assert "Found 3 columns beside the names token, pos" in sentence
    assert "columns 1, 2, 3" in error_of(tmp_path, path, None, label=["4"])


def test_a_sequence_without_symbols_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('name,x\n"ab",1\n" ",1\n')
    assert "at least one symbol" in error_of(tmp_path, path, 3, sequence_column="name")


def test_a_value_that_is_no_number_is_refused_in_sequences(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("sequence,t,a,b\n1,1,5,6\n1,2,,6\n")
    assert "as an observed value" in error_of(tmp_path, path, 3)


def test_a_folder_that_cannot_be_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert "permission denied" in error_of(tmp_path, tmp_path, None)


# Any bytes


def _valid_files() -> dict[str, bytes]:
    rows = [
        {"text": f"héllo {n}", "label": n % 2, "tokens": ["a", "b"], "slots": ["O", "B-x"]}
        for n in range(6)
    ]
    lines = "".join(json.dumps(row, ensure_ascii=n % 2 == 0) + "\n" for n, row in enumerate(rows))
    csv = "task,split,x,word,label\n" + "".join(
        f'{"ab"[n % 2]},{("train", "dev")[n % 2]},{n},"w ""{n}"",\n",{n % 3}\n' for n in range(6)
    )
    long = "task,sequence,t,x\n" + "".join(f"a,{n // 3},{n % 3},{n}.5\n" for n in range(9))
    sink = pa.BufferOutputStream()
    table = pa.table(
        {
            "text": pa.array(["x", "yé", None, "z"] * 3).dictionary_encode(),
            "label": pa.array([0, 1, 0, 1] * 3, pa.int8()),
            "list": pa.array([["a"], []] * 6, pa.large_list(pa.large_string())),
        }
    )
    parquet.write_table(table.drop_columns(["text"]), sink)
    return {
        "train.jsonl": lines.encode(),
        "train.jsonl.gz": gzip.compress(lines.encode(), mtime=0),
        "table.csv": csv.encode(),
        "long.csv": long.encode(),
        "train.conll": b"EU\tNNP\tB-ORG\nrejects\tVBZ\tO\n\nPeter\tNNP\tB-PER\n",
        "train.txt": "1 2 3\n4 é\n".encode(),
        "table.parquet": sink.getvalue().to_pybytes(),
        "task.toml": b'label = "label"\nmetric = "accuracy"\nignore = ["a"]\n',
    }


FILES = _valid_files()
TEXTS = ["", "\0", "\n", "\r", '"', "\t", ",", "{", "[", "}", "1e999", "null", "NaN", " ", "9" * 25]
ESCAPES = ["\ufeff", "\\u0000", "\\ud800", "2020-01-01", "é"]
PIECES = st.sampled_from([*(text.encode() for text in TEXTS + ESCAPES), b"\xff", b"\xed\xa0\x80"])
CHANGES = st.lists(
    st.tuples(st.integers(0, 2**16), st.integers(0, 12), st.one_of(PIECES, st.binary(max_size=6))),
    min_size=1,
    max_size=4,
)


@settings(
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(name=st.sampled_from(sorted(FILES)), changes=CHANGES, label=st.sampled_from(["", "slots"]))
def test_any_change_of_a_valid_file_gives_tasks_or_one_of_our_errors(
    tmp_path: Path, name: str, changes: list[tuple[int, int, bytes]], label: str
) -> None:
    data = FILES[name]
    for place, length, piece in changes:
        start = place % (len(data) + 1)
        data = data[:start] + piece + data[start + length :]
    for path in tmp_path.iterdir():
        path.unlink()
    if name == "task.toml":
        (tmp_path / "train.jsonl").write_bytes(FILES["train.jsonl"])
    (tmp_path / name).write_bytes(data)
    options: dict[str, Any] = {"label": [label]} if label and "jsonl" in name else {}
    try:
        tasks = load_tasks(tmp_path, **options)
    except InputError as error:
        sentence = str(error)
    else:
        sentence = " ".join(tasks.notes)
        check(tasks)
    assert sentence.isprintable()


def check(tasks: TaskSet) -> None:
    for task in tasks:
        for split in task.splits.values():
            assert len(split) > 0
            assert np.isfinite(split.targets).all()
            assert not task.labels or split.targets.max() < len(task.labels)
    assert len(tasks.content) == 64
