"""Whatever is wrong with a task file, the answer is one sentence with file, row and remedy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from taskmix.errors import TaskFileError
from taskmix.tasks import load_tasks

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
    assert row is None or f", line {row}" in sentence
    assert "should" in sentence
    assert "Found" in sentence
    assert sentence.isprintable()
    return sentence


TAGGED = {"tokens": ["a", "b"], "slots": ["O", "O"]}
BAD_TAGS: list[tuple[dict[str, Any], str]] = [
    ({"tokens": ["a", "b"], "slots": ["O"]}, "1 tags beside 2 tokens"),
    ({"tokens": ["a"], "slots": None}, "nothing"),
    ({"tokens": None, "slots": ["O"]}, "nothing"),
    ({"tokens": ["a"], "slots": [None]}, "None"),
    ({"tokens": [None], "slots": ["O"]}, "None"),
    ({"tokens": [], "slots": []}, "an empty list"),
    ({"tokens": ["a\0"], "slots": ["O"]}, r"'a\x00'"),
    ({"tokens": ["a"], "slots": [""]}, "''"),
    ({"tokens": ["a"], "slots": ["O\0"]}, r"'O\x00'"),
]
LISTED = [{"text": "x", "label": ["a", "b"]}]
NOTHING = "Found the columns text, lable"
# The last file is the bad one: its rows or its text, the row that is named, the sentence, options.
BAD: list[tuple[dict[str, Any], int | None, str, dict[str, Any]]] = [
    ({"train.jsonl": GOOD, "dev.jsonl": [{"text": "x", "lable": 1}]}, None, NOTHING, {}),
    ({"train.jsonl": GOOD}, None, "column `x`", {"label": ["x"]}),
    ({"train.jsonl": GOOD}, None, "column `y`", {"text": ["y"]}),
    ({"train.jsonl": GOOD}, None, "column `z`", {"task_column": "z"}),
    *(
        ({"train.jsonl": GOOD, f"dev.{ending}": ""}, None, "A split should have rows", {})
        for ending in ("jsonl", "csv", "conll", "txt", "jsonl.gz")
    ),
    ({"train.jsonl": [*GOOD, {"text": None, "label": "a"}]}, 11, "`text`", {"strict": True}),
    *(
        ({"train.jsonl": [*GOOD, {"text": bad, "label": "a"}]}, None, "line 11", {"strict": True})
        for bad in (5, ["x"], {"a": 1})
    ),
    *(
        (
            {"train.jsonl": f'{{"x": 1, "label": 0.5}}\n{{"x": 1, "label": {number}}}\n'},
            2,
            "finite",
            {},
        )
        for number in ("Infinity", "-Infinity", "1e999")
    ),
    (
        {"train.jsonl": [{"text": "x", "label": 1}, {"text": "x", "label": True}]},
        None,
        "Found true or false in line 2 (True) and a number in line 1",
        {},
    ),
    (
        {
            "train.jsonl": [{"text": "x", "label": 1}, {"text": "x", "label": 0}],
            "dev.jsonl": [{"text": "x", "label": True}],
        },
        None,
        "true or false beside numbers in train.jsonl",
        {},
    ),
    ({"train.jsonl": LISTED}, 1, "Tags should stand beside `tokens`", {"kind": "tagging"}),
    ({"train.jsonl": LISTED}, 1, "as a label", {"kind": "classification"}),
    *(
        ({"dev.jsonl": [TAGGED], "train.jsonl": [TAGGED, bad]}, 2, f"Found {found}", {})
        for bad, found in BAD_TAGS
    ),
    ({"train.jsonl": [*GOOD, {"text": "a\0b", "label": "a"}]}, 11, "NUL", {}),
    ({"train.jsonl": [*GOOD, {"text": "x", "label": "a\0"}]}, 11, "NUL", {}),
    ({"t.csv": "task,label\na,1\n"}, None, "at least one column beside the target", {}),
    *(
        ({"train.jsonl": f'{{"text": "x", "label": 1}}\n{row}\n'}, 2, "each key once. Found '", {})
        for row in ('{"text": "x", "label": 1, "label": 2}', '{"a": {"b": 1, "b": 1}}')
    ),
    (
        {"train.conll": "a\tX\tO\n"},
        None,
        "Found 3 columns beside the names token, pos",
        {"columns": ["token", "pos"]},
    ),
    ({"train.conll": "a\tX\tO\n"}, None, "columns 1, 2, 3", {"label": ["4"]}),
    ({"t.csv": 'name,x\n"ab",1\n" ",1\n'}, 3, "at least one symbol", {"sequence_column": "name"}),
    ({"t.csv": "sequence,t,a,b\n1,1,5,6\n1,2,,6\n"}, 3, "as an observed value", {}),
]


@pytest.mark.parametrize(("files", "row", "sentence", "options"), BAD)
def test_what_is_wrong_with_a_file_is_told_with_its_row(
    tmp_path: Path, files: dict[str, Any], row: int | None, sentence: str, options: dict[str, Any]
) -> None:
    for name, content in files.items():
        path = tmp_path / name
        text = (
            content if isinstance(content, str) else "".join(json.dumps(r) + "\n" for r in content)
        )
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert sentence in error_of(tmp_path, path, row, **options)


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


def test_text_that_is_never_there_is_refused_and_some_empty_rows_are_not(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "train.jsonl", [{**row, "text": " "} for row in GOOD])
    assert "should have words in some rows" in error_of(tmp_path, path, 1)
    jsonl(path, [{**GOOD[0], "text": ""}, *GOOD])
    assert len(load_tasks(tmp_path)) == 1


def test_a_folder_without_tasks_and_a_path_to_nothing_are_refused(tmp_path: Path) -> None:
    assert "Found none of these" in error_of(tmp_path, tmp_path, None)
    (tmp_path / "README.txt").write_text("hello")
    assert "Found none of these" in error_of(tmp_path, tmp_path, None)
    nowhere = tmp_path / "nowhere.csv"
    assert "no such file" in error_of(nowhere, nowhere, None)
    folder = tmp_path / "nowhere"
    assert "Found nothing" in error_of(folder, folder, None)


def test_a_folder_that_cannot_be_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert "permission denied" in error_of(tmp_path, tmp_path, None)
