"""Folders to tasks: shapes of folders, kinds of tasks, splits, labels and notes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from taskmix.errors import InputError, OptionError, TaskFileError
from taskmix.tasks import Task, TaskSet, load_tasks
from taskmix.tasks._loading._splits import divide_rows, name_splits, put_aside

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


def test_every_sub_folder_is_a_task_named_after_it(tmp_path: Path) -> None:
    text_task(tmp_path / "books")
    text_task(tmp_path / "apparel", test=0)
    tasks = load_tasks(tmp_path)
    assert tasks.names == ("apparel", "books")
    assert tasks["books"].sizes == {"train": 20, "dev": 4, "test": 4}
    assert tasks["apparel"].sizes == {"train": 20, "dev": 4}
    assert tasks["books"].labels == ("0", "1")
    assert tasks["books"].metric == "accuracy"
    assert tasks["books"].kind == "classification"
    assert texts(tasks["books"], "dev") == ["dev 0", "dev 1", "dev 2", "dev 3"]
    assert tasks.notes == ()


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


def test_a_task_column_holds_for_split_files_too(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        rows = [{"text": "x", "who": "ab"[n % 2], "label": n % 2} for n in range(10)]
        jsonl(tmp_path / "f" / f"{split}.jsonl", rows)
    assert load_tasks(tmp_path / "f", task_column="who").names == ("f/a", "f/b")


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


def test_split_names_have_synonyms() -> None:
    assert name_splits(["train", "validation", "test"]) == {
        "train": "train",
        "validation": "dev",
        "test": "test",
    }
    assert name_splits(["Train", "VALID", "state_counts", "unlabeled", "train_2"]) == {
        "Train": "train",
        "VALID": "dev",
    }


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


def test_a_split_column_is_honoured(tmp_path: Path) -> None:
    splits = ["train", "valid", "test", "train", "train", "train"]
    rows = "".join(f"{split},{n},{n % 2}\n" for n, split in enumerate(splits * 2))
    (tmp_path / "t.csv").write_text("split,x,label\n" + rows)
    (task,) = load_tasks(tmp_path)
    assert task.sizes == {"train": 8, "dev": 2, "test": 2}
    assert task.splits["train"].inputs.column_names == ["x"]
    assert task.splits["dev"].inputs.column("x").to_pylist() == [1, 7]


def test_validation_rows_become_train_where_a_table_has_no_train_rows(tmp_path: Path) -> None:
    rows = "".join(f"{'validation' if n < 20 else 'test'},{n / 2},{n % 2}\n" for n in range(30))
    (tmp_path / "t.csv").write_text("split,x,label\n" + rows)
    tasks = load_tasks(tmp_path)
    assert tasks[0].sizes == {"train": 18, "dev": 2, "test": 10}
    assert "its dev rows became train" in " ".join(tasks.notes)


def test_a_split_column_of_other_things_is_a_feature_unless_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("split,label\n" + "pea,0\nbanana,1\n" * 5)
    (task,) = load_tasks(tmp_path)
    assert task.splits["train"].inputs.column_names == ["split"]
    with pytest.raises(TaskFileError, match=r"Found 'banana' in .*, line 3"):
        load_tasks(tmp_path, split_column="split")


def test_small_tasks_of_a_table_get_the_splits_they_have_rows_for(tmp_path: Path) -> None:
    rows = "a,1,0\n" + "b,1,0\n" * 2 + "c,1,0\n" * 3
    (tmp_path / "t.csv").write_text("task,x,label\n" + rows)
    tasks = load_tasks(tmp_path)
    assert tasks["a"].sizes == {"train": 1}
    assert tasks["b"].sizes == {"train": 1, "dev": 1}
    assert tasks["c"].sizes == {"train": 1, "dev": 1, "test": 1}
    assert "too few rows" in " ".join(tasks.notes)


# Kinds


def test_text_alone_or_in_pairs_and_other_columns_are_kept_out(tmp_path: Path) -> None:
    rows = [{"text": "p", "choice1": "c", "question": "q", "label": n % 2} for n in range(9)]
    jsonl(tmp_path / "copa" / "train.jsonl", rows)
    jsonl(tmp_path / "wic" / "train.jsonl", [{**row, "text2": "h"} for row in rows])
    tasks = load_tasks(tmp_path)
    assert tasks["copa"].inputs == "text"
    assert tasks["copa"].splits["train"].inputs.column_names == ["text"]
    assert tasks["wic"].inputs == "pair"
    assert tasks["wic"].splits["train"].inputs.column_names == ["text", "text2"]
    named = load_tasks(tmp_path / "copa", text=["question", "choice1"])
    assert named[0].splits["train"].inputs.to_pylist()[0] == {"text": "q", "text2": "c"}
    single = load_tasks(tmp_path / "wic", text=["text"])
    assert single[0].inputs == "text"


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


def test_numbers_in_csv_are_numbers_where_the_cells_of_all_splits_are(tmp_path: Path) -> None:
    header = "whole,broken,word,mixed,missing,label\n"
    (tmp_path / "train.csv").write_text(header + "1,1,a,1,,yes\n2, 2.5,b,2,NA,no\n")
    (tmp_path / "dev.csv").write_text(header + "3,3,c,?,7,yes\n")
    (task,) = load_tasks(tmp_path)
    table = task.splits["train"].inputs
    assert table.to_pydict() == {
        "whole": [1, 2],
        "broken": [1.0, 2.5],
        "word": ["a", "b"],
        "mixed": ["1", "2"],
        "missing": [None, None],
    }
    assert table.schema.equals(task.splits["dev"].inputs.schema)
    assert task.labels == ("no", "yes")


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


def test_lists_of_tags_beside_tokens_are_tagging(tmp_path: Path) -> None:
    rows = [{"tokens": ["a", "b"], "slots": ["O", "B-x"]}, {"tokens": ["c"], "slots": ["I-x"]}]
    jsonl(tmp_path / "train.jsonl", rows)
    jsonl(tmp_path / "dev.jsonl", rows[1:])
    (task,) = load_tasks(tmp_path)
    assert (task.kind, task.inputs, task.metric) == ("tagging", "tokens", "entity_f1")
    assert task.labels == ("O", "B-x", "I-x")
    assert task.splits["train"].targets.tolist() == [0, 1, 2]
    assert task.splits["dev"].targets.tolist() == [2]


def test_intent_reads_the_text_and_slots_read_the_tokens(tmp_path: Path) -> None:
    rows = [
        {"text": "a b", "label": "xy"[n % 2], "tokens": ["a", "b"], "slots": ["O", "B-t"]}
        for n in range(12)
    ]
    jsonl(tmp_path / "atis" / "train.jsonl", rows)
    tasks = load_tasks(tmp_path, label=["label", "slots"])
    assert tasks.names == ("atis/label", "atis/slots")
    assert [task.inputs for task in tasks] == ["text", "tokens"]
    assert len({task.source for task in tasks}) == 2
    assert tasks[0].sizes == tasks[1].sizes
    assert len(tasks[1].splits["dev"].targets) == 2 * len(tasks[1].splits["dev"])


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


def test_a_long_table_of_words_holds_sequences_of_symbols(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("who,page,when\n1,b,2\n1,a,1\n2,c,1\n")
    (task,) = load_tasks(tmp_path, sequence_column="who", time_column="when")
    everything = [
        value
        for split in task.splits.values()
        for value in split.inputs.column("symbols").to_pylist()
    ]
    assert sorted(everything) == [["a", "b"], ["c"]]


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
    monkeypatch.setattr("taskmix.tasks._loading._table_cache.read_rows", None)
    assert same(load_tasks(tmp_path, cache=cache), first)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "nonsense"])
def test_a_broken_entry_is_rewritten(tmp_path: Path, damage: str) -> None:
    text_task(tmp_path / "a")
    cache = tmp_path / ".cache"
    first = load_tasks(tmp_path, cache=cache)
    entries = {path: path.read_bytes() for path in cache.iterdir()}
    for path, data in entries.items():
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 1
        broken = {"cut": data[:-9], "flip": bytes(flipped), "empty": b"", "nonsense": b"x" * 99}
        path.write_bytes(broken[damage])
    assert same(load_tasks(tmp_path, cache=cache), first)
    assert {path: path.read_bytes() for path in cache.iterdir()} == entries


def test_a_cache_that_cannot_be_written_is_noted(tmp_path: Path) -> None:
    text_task(tmp_path / "a")
    (tmp_path / "taken").write_text("a file where the folder should be")
    tasks = load_tasks(tmp_path, cache=tmp_path / "taken")
    assert tasks.names == ("a",)
    assert "Tables were not kept in" in " ".join(tasks.notes)
