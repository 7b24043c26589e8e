"""Folders to tasks: shapes of folders, kinds of tasks, splits, labels and notes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from taskmix.errors import InputError, OptionError, TaskFileError
from taskmix.tasks import Question, Task, TaskSet, load_tasks
from taskmix.tasks._loading._splits import divide_rows, put_aside

Row = Mapping[str, Any]


def jsonl(path: Path, rows: Iterable[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def text_task(folder: Path, *, train: int = 20, dev: int = 4, test: int = 4) -> None:
    for split, count in (("train", train), ("dev", dev), ("test", test)):
        if count:
            rows = [{"text": f"{split} {place}", "label": place % 2} for place in range(count)]
            jsonl(folder / f"{split}.jsonl", rows)


def texts(task: Task, split: str) -> list[str]:
    result: list[str] = task.splits[split].inputs.column("text").to_pylist()
    return result


def labels(task: Task, split: str) -> list[str]:
    return [task.labels[target] for target in task.splits[split].targets]


# Shapes of folders


def test_several_label_columns_make_tasks_that_share_their_inputs(tmp_path: Path) -> None:
    rows = [{"text": f"{n}", "text2": "x", "label": "ab"[n % 2], "score": n / 3} for n in range(20)]
    jsonl(tmp_path / "sick" / "train.jsonl", rows)
    tasks = load_tasks(tmp_path / "sick", label=["label", "score"])
    assert tasks.names == ("sick/label", "sick/score")
    first, second = tasks
    assert first.kind == "classification"
    assert second.kind == "regression"
    assert second.metric == "rmse"
    assert first.inputs == second.inputs == "pair"
    assert first.source == second.source
    for split in ("train", "dev"):
        assert first.splits[split].inputs is second.splits[split].inputs
    sub_folders = load_tasks(tmp_path, label=["label", "score"])
    assert sub_folders.names == ("sick/label", "sick/score")


def test_the_table_with_the_columns_asked_for_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text("state,count\nA,1\n")
    table = pa.table({"state": ["A", "B"] * 10, "x": [1, 2] * 10, "label": [0, 1] * 10})
    parquet.write_table(table, tmp_path / "people.parquet")
    assert load_tasks(tmp_path, task_column="state").names == ("A", "B")
    with pytest.raises(TaskFileError, match="Found none that has `country`, `label` among"):
        load_tasks(tmp_path, task_column="country")


def test_formats_of_splits_may_differ(tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", [{"text": "a", "label": 0}, {"text": "b", "label": 1}])
    (tmp_path / "dev.csv").write_text("label,text\n1,1984\n")
    table = pa.table({"text": ["c"], "label": pa.array([0.0])})
    parquet.write_table(table, tmp_path / "test.parquet")
    (task,) = load_tasks(tmp_path)
    assert texts(task, "dev") == ["1984"]
    assert labels(task, "dev") == ["1"]
    assert labels(task, "test") == ["0"]


def test_tasks_are_kept_in_the_order_asked_for_and_others_are_not_read(tmp_path: Path) -> None:
    for name in "abc":
        text_task(tmp_path / name)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "train.jsonl").write_text("nonsense")
    assert load_tasks(tmp_path, tasks=["c", "a"]).names == ("c", "a")
    with pytest.raises(InputError, match="`x` should be one of the tasks"):
        load_tasks(tmp_path, tasks=["a", "x"])
    with pytest.raises(InputError, match="`a/x` should be one of the tasks"):
        load_tasks(tmp_path, tasks=["a/x"])


def test_notes_are_about_the_tasks_kept(tmp_path: Path) -> None:
    text_task(tmp_path / "a", dev=0)
    text_task(tmp_path / "b")
    assert "`a`" in load_tasks(tmp_path).notes[0]
    assert load_tasks(tmp_path, tasks=["b"]).notes == ()


def test_hidden_folders_and_folders_without_tasks_are_left_alone(tmp_path: Path) -> None:
    text_task(tmp_path / "a")
    text_task(tmp_path / ".cache")
    (tmp_path / "figures").mkdir()
    (tmp_path / "README.txt").write_text("read me")
    tasks = load_tasks(tmp_path)
    assert tasks.names == ("a",)
    assert tasks.notes == ("No train, dev or test file is in figures: left alone.",)


# Splits


def test_dev_matched_is_dev_where_there_is_no_plain_one(tmp_path: Path) -> None:
    text_task(tmp_path, dev=0)
    for name in ("dev_mismatched_1k", "dev_matched", "test_hard"):
        jsonl(tmp_path / f"{name}.jsonl", [{"text": name, "label": 0}])
    (task,) = load_tasks(tmp_path)
    assert list(task.splits) == ["train", "dev", "test", "dev_mismatched_1k", "test_hard"]
    assert texts(task, "dev") == ["dev_matched"]
    assert texts(task, "test") == ["test 0", "test 1", "test 2", "test 3"]


def test_every_class_has_its_share_of_every_split() -> None:
    strata = np.repeat([0, 1, 2, 3], [500, 100, 30, 3])
    codes = divide_rows(len(strata), strata)
    for code, (train, dev, test) in enumerate([(400, 50, 50), (80, 10, 10), (24, 3, 3)]):
        own = np.bincount(codes[strata == code], minlength=3)
        assert np.abs(own - [train, dev, test]).max() <= 1
    assert (codes[strata == 3] == 0).any()
    assert np.bincount(codes).tolist() == [505, 64, 64]
    aside = put_aside(len(strata), strata)
    assert [int(aside[strata == code].sum()) for code in range(3)] == [50, 10, 3]


def test_rows_with_the_same_inputs_are_never_parted() -> None:
    generator = np.random.default_rng(0)
    same = generator.integers(0, 300, 500)
    strata = generator.integers(0, 3, 500)
    for codes in (divide_rows(500, strata, same), put_aside(500, strata, same).astype(int)):
        for unit in np.unique(same):
            assert len(np.unique(codes[same == unit])) == 1
        assert 0.6 < np.mean(codes == 0) < 0.95
        assert (codes == 1).any()


def test_the_fixed_rule_is_the_same_for_ever() -> None:
    # SplitMix64 worked out by hand in plain Python integers.
    def mix(number: int) -> int:
        mask = 2**64 - 1
        state = number * 0x9E3779B97F4A7C15 & mask
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        state = (state ^ state >> 27) * 0x94D049BB133111EB & mask
        return state ^ state >> 31

    order = sorted(range(25), key=lambda place: mix(place + 1))
    assert np.flatnonzero(put_aside(25)).tolist() == sorted(order[::10])
    assert np.flatnonzero(divide_rows(25) == 2).tolist() == sorted(order[1::10])


def test_a_task_without_train_is_loaded_with_a_note(tmp_path: Path) -> None:
    text_task(tmp_path / "r1", train=0)
    tasks = load_tasks(tmp_path)
    assert tasks["r1"].sizes == {"dev": 4, "test": 4}
    assert tasks["r1"].size == 0
    assert "no train split" in tasks.notes[0]


def test_validation_rows_become_train_where_a_table_has_no_train_rows(tmp_path: Path) -> None:
    rows = "".join(f"{'validation' if n < 20 else 'test'},{n / 2},{n % 2}\n" for n in range(30))
    (tmp_path / "t.csv").write_text("split,x,label\n" + rows)
    tasks = load_tasks(tmp_path)
    assert tasks[0].sizes == {"train": 18, "dev": 2, "test": 10}
    assert "its dev rows became train" in " ".join(tasks.notes)


def test_small_tasks_of_a_table_get_the_splits_they_have_rows_for(tmp_path: Path) -> None:
    rows = "a,1,0\n" + "b,1,0\n" * 2 + "c,1,0\n" * 3
    (tmp_path / "t.csv").write_text("task,x,label\n" + rows)
    tasks = load_tasks(tmp_path)
    assert tasks["a"].sizes == {"train": 1}
    assert tasks["b"].sizes == {"train": 1, "dev": 1}
    assert tasks["c"].sizes == {"train": 1, "dev": 1, "test": 1}
    assert "too few rows" in " ".join(tasks.notes)


# Kinds


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        ([3, 1, 2], "classification"),
        ([1.0, 0.0], "classification"),
        (list(range(40)), "classification"),  # 0, 1, ..., k - 1 are class numbers
        (list(range(1, 41)), "regression"),
        ([0.5, 1.0], "regression"),
        ([float(n) * 7 for n in range(40)], "regression"),
        (list(range(-15, 15)), "regression"),
    ],
)
def test_the_kind_follows_from_the_labels(tmp_path: Path, values: list[Any], kind: str) -> None:
    rows = [{"text": "x", "label": value} for value in values * 3]
    jsonl(tmp_path / "train.jsonl", rows)
    jsonl(tmp_path / "dev.jsonl", rows)
    (task,) = load_tasks(tmp_path)
    assert task.kind == kind
    if kind == "regression":
        assert task.splits["dev"].targets.dtype == np.float64
        assert task.splits["dev"].targets.tolist() == [float(value) for value in values * 3]


def test_the_kind_may_be_said(tmp_path: Path) -> None:
    rows = [{"text": "x", "label": n % 5} for n in range(10)]
    jsonl(tmp_path / "train.jsonl", rows)
    (task,) = load_tasks(tmp_path, kind="regression", metric="pearson")
    assert (task.kind, task.metric, task.labels) == ("regression", "pearson", ())
    jsonl(tmp_path / "train.jsonl", [{"text": "x", "label": n / 4} for n in range(8)] * 2)
    (task,) = load_tasks(tmp_path, kind="classification")
    assert task.labels[:3] == ("0.0", "0.25", "0.5")


def test_features_are_all_columns_but_those_that_are_something_else(tmp_path: Path) -> None:
    rows = [
        {"x": n, "flag": n > 3, "id": n, "list": [1], "none": None, "y": n % 2, "label": n % 2}
        for n in range(10)
    ]
    jsonl(tmp_path / "train.jsonl", rows)
    tasks = load_tasks(tmp_path, label=["label", "y"], ignore=["id"])
    assert tasks[0].splits["train"].inputs.column_names == ["x", "flag"]
    notes = " ".join(tasks.notes)
    assert "`list`" in notes
    assert "`none`" in notes
    (task,) = load_tasks(tmp_path, features=["id", "x"])
    assert task.splits["train"].inputs.column_names == ["id", "x"]
    with pytest.raises(OptionError, match="should not have the target"):
        load_tasks(tmp_path, features=["id", "label"])


CONLL = "EU\tNNP\tB-ORG\nrejects\tVBZ\tO\n\nPeter\tNNP\tB-PER\n"


def test_conll_gives_the_last_column_unless_others_are_named(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conll").write_text(CONLL)
    name = tmp_path.name
    (task,) = load_tasks(tmp_path)
    assert task.name == name
    assert task.labels == ("O", "B-ORG", "B-PER")
    assert task.metric == "entity_f1"
    assert task.splits["train"].inputs.column_names == ["tokens"]
    assert task.splits["train"].targets.tolist() == [1, 0, 2]
    by_number = load_tasks(tmp_path, label=["2", "3"])
    assert by_number.names == (f"{name}/2", f"{name}/3")
    assert by_number[0].metric == "accuracy"
    assert by_number[0].splits["train"].inputs is by_number[1].splits["train"].inputs
    by_name = load_tasks(tmp_path, label=["pos", "ner"], columns=["token", "pos", "ner"])
    assert by_name.names == (f"{name}/pos", f"{name}/ner")
    assert by_name[0].labels == ("NNP", "VBZ")


def test_tags_that_train_does_not_have_extend_the_labels(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("a\tO\n")
    (tmp_path / "dev.conll").write_text("a\tB-new\n")
    tasks = load_tasks(tmp_path)
    assert tasks[0].labels == ("O", "B-new")
    assert "labels that no row of train has ('B-new')" in tasks.notes[0]


def test_a_lone_text_file_is_divided_and_its_first_symbol_may_be_the_task(tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("u1 ls cd\nu2 vi\nu1 ls\n")
    (tmp_path / "readme.txt").write_text("About the users.")
    tasks = load_tasks(tmp_path, first_symbol_is_task=True)
    assert tasks.names == ("u1", "u2")
    assert tasks["u2"].splits["train"].inputs.to_pydict() == {"symbols": [["vi"]]}
    with pytest.raises(TaskFileError, match="line 2"):
        (tmp_path / "users.txt").write_text("u1 ls\nu2\n")
        load_tasks(tmp_path, first_symbol_is_task=True)


def test_a_long_table_holds_sequences_of_vectors(tmp_path: Path) -> None:
    # Rows out of order, and the same number for a sequence of either task and either split.
    rows = [
        "train,s1,1,2,3.5,4",
        "train,s1,1,1,1.5,2",
        "train,s2,1,1,7,8",
        "test,s1,1,1,9,10",
        "train,s1,2,1,5,6",
    ]
    (tmp_path / "t.csv").write_text("split,task,sequence,t,a,b\n" + "\n".join(rows))
    tasks = load_tasks(tmp_path)
    assert tasks.names == ("s1", "s2")
    everything = [
        value
        for split in tasks["s1"].splits.values()
        for value in split.inputs.column("values").to_pylist()
    ]
    assert sorted(everything) == [[[1.5, 2.0], [3.5, 4.0]], [[5.0, 6.0]], [[9.0, 10.0]]]
    assert tasks["s1"].splits["test"].inputs.column("values").to_pylist() == [[[9.0, 10.0]]]
    assert tasks["s2"].sizes == {"train": 1}


def test_a_time_that_comes_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sequence,t,x\n1,1,5\n1,2,5\n1,1,6\n")
    with pytest.raises(TaskFileError, match=r"Found 1 twice in .*, line 4"):
        load_tasks(tmp_path)


def test_labels_keep_their_rows_and_give_the_order(tmp_path: Path) -> None:
    rows = [{"text": f"{n}", "label": "abc"[n % 3]} for n in range(12)]
    jsonl(tmp_path / "train.jsonl", [*rows, {"text": "none", "label": None}])
    jsonl(tmp_path / "dev.jsonl", rows[:3])
    (task,) = load_tasks(tmp_path, labels=["c", "a"])
    assert task.labels == ("c", "a")
    assert texts(task, "dev") == ["0", "2"]
    assert task.splits["dev"].targets.tolist() == [1, 0]
    jsonl(tmp_path / "train.jsonl", [{"text": "x", "label": n} for n in (1.0, 2.0, None)] * 9)
    jsonl(tmp_path / "dev.jsonl", [{"text": "x", "label": 2}])
    assert load_tasks(tmp_path, labels=["2", "1"])[0].sizes == {"train": 18, "dev": 1}
    with pytest.raises(TaskFileError, match="no row with 'd'"):
        load_tasks(tmp_path, labels=["1", "d"])


@pytest.mark.parametrize("cells", [["s", "p", "q", "r"], ["s", "s;p", "q;r", "r"]])
def test_each_task_of_a_table_has_the_classes_of_its_own_rows(
    tmp_path: Path, cells: list[str]
) -> None:
    lines = [f"{'ab'[place // 2]},{place},{cell}\n" for place, cell in enumerate(cells)]
    (tmp_path / "t.csv").write_text("task,x,label\n" + "".join(lines * 4))
    several = ";" in "".join(cells)
    tasks = load_tasks(tmp_path, separator=";" if several else None)
    assert [task.labels for task in tasks] == [("p", "s"), ("q", "r")]
    assert [task.reading.classes for task in tasks] == [2, 2]
    named = load_tasks(tmp_path, labels=["q", "p"], separator=";" if several else None)
    assert [task.labels for task in named] == [("q", "p"), ("q", "p")]
    for task in tasks:
        for split in task.splits.values():
            for x, target in zip(split.inputs["x"].to_pylist(), split.targets, strict=True):
                own = np.flatnonzero(target) if several else [target]
                assert {task.labels[place] for place in own} == set(cells[x].split(";"))


def test_options_that_cannot_be_are_refused(tmp_path: Path) -> None:
    text_task(tmp_path)
    with pytest.raises(OptionError, match="at least one"):
        load_tasks(tmp_path, label=[])
    with pytest.raises(OptionError, match="different names"):
        load_tasks(tmp_path, label=["label", "label"])
    with pytest.raises(OptionError, match="or two for a pair"):
        load_tasks(tmp_path, text=["a", "b", "c"])
    with pytest.raises(OptionError, match="`kind` should be one of"):
        load_tasks(tmp_path, kind="ranking")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="one label column"):
        load_tasks(tmp_path, label=["label", "text"], labels=["0"])
    with pytest.raises(OptionError, match=r"columns of .conll"):
        load_tasks(tmp_path, columns=["a", "b"])
    assert load_tasks(tmp_path, label="label").names == (tmp_path.name,)


# Cache


def same(first: TaskSet, second: TaskSet) -> bool:
    return first.content == second.content and first.notes == second.notes


def test_a_cached_table_is_read_in_place_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text_task(tmp_path / "a")
    cache = tmp_path / ".cache"
    first = load_tasks(tmp_path, cache=cache)
    assert len(list(cache.iterdir())) == 3
    monkeypatch.setattr("taskmix.tasks._formats._readers.read_rows", None)
    assert same(load_tasks(tmp_path, cache=cache), first)


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([10, 9, 2], ("2", "9", "10")),
        (["b", "a", "É"], ("a", "b", "É")),
        ([True, False], ("false", "true")),
        ([2.0, 1.0], ("1", "2")),
        ([-1, 1], ("-1", "1")),
    ],
)
def test_labels_have_a_fixed_order(
    tmp_path: Path, values: list[Any], order: tuple[str, ...]
) -> None:
    rows = [{"text": "x", "label": value} for value in values]
    jsonl(tmp_path / "train.jsonl", rows)
    jsonl(tmp_path / "dev.jsonl", rows[:1])
    (task,) = load_tasks(tmp_path)
    assert task.labels == order
    assert task.splits["train"].targets.dtype == np.int64


# Whatever is wrong with a task file, the answer is one sentence with file, row and remedy.

GOOD = [{"text": f"row {n}", "label": "ab"[n % 2]} for n in range(10)]


def bad_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
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
    bad_jsonl(tmp_path / "train.jsonl", GOOD)
    bad_jsonl(tmp_path / "dev.jsonl", GOOD)
    path = bad_jsonl(tmp_path / f"{split}.jsonl", [*GOOD, {"text": "x", "label": "c"}])
    sentence = error_of(tmp_path, path, 11)
    assert "Found 'c'" in sentence
    assert "which has 'a', 'b'" in sentence
    (task,) = load_tasks(tmp_path, extend_labels=True)
    assert task.labels == ("a", "b", "c")


def test_a_new_label_is_accepted_where_train_has_labels_that_occur_once(tmp_path: Path) -> None:
    many = [{"text": "x", "label": "ab"[n % 2]} for n in range(100)]
    bad_jsonl(tmp_path / "dev.jsonl", [{"text": "x", "label": "new"}])
    train = bad_jsonl(tmp_path / "train.jsonl", many)
    dev = tmp_path / "dev.jsonl"
    error_of(tmp_path, dev, 1)
    bad_jsonl(train, [*many, {"text": "x", "label": "once"}])
    tasks = load_tasks(tmp_path)
    assert tasks[0].labels == ("a", "b", "new", "once")
    assert "no row of train has ('new')" in tasks.notes[0]
    error_of(tmp_path, dev, 1, extend_labels=False)
    # Numbers are places in a list of classes, and a new one is a slip.
    bad_jsonl(train, [{"text": "x", "label": n % 2 if n else 9} for n in range(200)])
    bad_jsonl(dev, [{"text": "x", "label": 3}])
    error_of(tmp_path, dev, 1)


def test_text_that_is_never_there_is_refused_and_some_empty_rows_are_not(tmp_path: Path) -> None:
    path = bad_jsonl(tmp_path / "train.jsonl", [{**row, "text": " "} for row in GOOD])
    assert "should have words in some rows" in error_of(tmp_path, path, 1)
    bad_jsonl(path, [{**GOOD[0], "text": ""}, *GOOD])
    assert len(load_tasks(tmp_path)) == 1


def test_a_folder_without_tasks_and_a_path_to_nothing_are_refused(tmp_path: Path) -> None:
    assert "Found none of these" in error_of(tmp_path, tmp_path, None)
    (tmp_path / "README.txt").write_text("hello")
    assert "Found none of these" in error_of(tmp_path, tmp_path, None)
    nowhere = tmp_path / "nowhere.csv"
    assert "no such file" in error_of(nowhere, nowhere, None)
    folder = tmp_path / "nowhere"
    assert "Found nothing" in error_of(folder, folder, None)


# Folders with one file for each task, and names that differ in case.

TABLE = "text,label\n" + "".join(f"a film number {n} ok,{'ab'[n % 2]}\n" for n in range(20))


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(TABLE)
    return folder


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


def test_lists_of_tags_beside_tokens_are_tagging(tmp_path: Path) -> None:
    rows = [{"tokens": ["a", "b"], "slots": ["O", "B-x"]}, {"tokens": ["c"], "slots": ["I-x"]}]
    jsonl(tmp_path / "train.jsonl", rows)
    jsonl(tmp_path / "dev.jsonl", rows[1:])
    (task,) = load_tasks(tmp_path)
    assert (task.kind, task.inputs, task.metric) == ("tagging", "tokens", "entity_f1")
    assert task.labels == ("O", "B-x", "I-x")
    assert task.splits["train"].targets.tolist() == [0, 1, 2]
    assert task.splits["dev"].targets.tolist() == [2]
