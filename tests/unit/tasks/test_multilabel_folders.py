"""Columns with several labels a row: lists, text with a separator, and what only looks like it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from taskmix.errors import TaskFileError
from taskmix.tasks import (
    MISSING,
    Question,
    TaskSet,
    WordEncoding,
    held_tasks,
    load_tasks,
    sample_rows,
    write_tasks,
)

SETS: list[list[str]] = [["drama"], ["action", "drama"], [], ["comedy"], ["action"]]
MARKS = [[0, 0, 1], [1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 0, 0]]  # action, comedy, drama


def jsonl(folder: Path, cells: list[Any], column: str = "label", **more: list[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"text": f"a film number {place}", column: cell, **{n: v[place] for n, v in more.items()}}
        for place, cell in enumerate(cells)
    ]
    for split in ("train", "dev"):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def csv(folder: Path, cells: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f'a film number {place},"{cell}"\n' for place, cell in enumerate(cells))
    for split in ("train", "dev"):
        (folder / f"{split}.csv").write_text(f"text,label\n{lines}")
    return folder


def marks(tasks: TaskSet) -> list[list[int]]:
    found: list[list[int]] = tasks[0].splits["train"].targets.tolist()
    return found


@pytest.mark.parametrize("column", ["label", "labels"])
def test_lists_without_tokens_beside_them_are_sets_of_labels(tmp_path: Path, column: str) -> None:
    tasks = load_tasks(jsonl(tmp_path / "films", SETS, column))
    assert (tasks[0].kind, tasks[0].metric) == ("multilabel", "micro_f1")
    assert tasks[0].labels == ("action", "comedy", "drama")
    assert marks(tasks) == MARKS
    assert f"3 labels of `{column}`; micro_f1" in str(tasks[0].reading)


def test_an_empty_list_is_a_row_without_labels_and_null_is_one_that_nobody_knows(
    tmp_path: Path,
) -> None:
    jsonl(tmp_path / "films", [*SETS, None])
    other = {"mood": ["good", "bad"] * 3}
    jsonl(tmp_path / "films", [*SETS, None], **other)
    tasks = load_tasks(tmp_path / "films", label=["label", "mood"])
    found = tasks["films/label"].splits["train"].targets
    assert found[2].tolist() == [0, 0, 0]
    assert (found[5] == MISSING).all()


@pytest.mark.parametrize("mark", [";", "|", ",", " "])
def test_text_is_cut_where_pieces_come_back(tmp_path: Path, mark: str) -> None:
    sets = [*SETS, ["action", "comedy"], ["action", "comedy", "drama"]] * 3
    tasks = load_tasks(csv(tmp_path, [mark.join(each) or ";" for each in sets]))
    if mark != ";":  # an empty cell of CSV is a missing one, so these have another label there
        sets = [each or [";"] for each in sets]
    assert tasks[0].kind == "multilabel"
    spoken = "white space" if mark == " " else f"`{mark}`"
    assert any(f"several labels in a cell, with {spoken}" in note for note in tasks.notes)
    assert marks(tasks)[1][-1] == marks(tasks)[1][-3] == 1


@pytest.mark.parametrize(
    "cells",
    [
        ["very good", "good", "bad", "very bad", "fine"] * 4,  # names of two words
        ["Arts, Crafts", "Books", "Toys, Games", "Home"] * 4,  # pieces that stand nowhere else
        ["a", "b", "c"] * 30 + ["a;b", "b;c", "a;c"],  # slips, a few of a hundred
        ["new york", "york", "new"] * 5,
    ],
)
def test_names_of_classes_are_not_cut(tmp_path: Path, cells: list[str]) -> None:
    assert load_tasks(csv(tmp_path, cells))[0].kind == "classification"


def test_what_only_looks_like_several_labels_is_said(tmp_path: Path) -> None:
    sets = ["drama, war", "drama, love", "war, love", "love, crime", "crime, war", "crime, drama"]
    tasks = load_tasks(csv(tmp_path, sets * 4))
    assert tasks[0].kind == "classification"
    assert any('`kind="multilabel"`' in note for note in tasks.notes)
    said = load_tasks(tmp_path, kind="multilabel")
    assert said[0].labels == ("crime", "drama", "love", "war")
    assert any("was cut at `,`" in note for note in said.notes)


def test_lists_that_pandas_wrote_into_csv_are_read(tmp_path: Path) -> None:
    tasks = load_tasks(csv(tmp_path, [str(each) for each in SETS]))
    assert marks(tasks) == MARKS
    assert any("lists written as text" in note for note in tasks.notes)


def test_lists_of_numbers_are_refused_with_what_to_do(tmp_path: Path) -> None:
    jsonl(tmp_path, [[0.5, 1.25], [2.0, 0.1], [1.5, 7.0]])
    for kind in (None, "regression"):
        with pytest.raises(TaskFileError, match=r"one number a row.*column of its own.*`label`"):
            load_tasks(tmp_path, kind=kind)  # type: ignore[arg-type]


def test_tags_beside_words_of_another_name_are_not_taken_for_labels(tmp_path: Path) -> None:
    words = [["a", "film"], ["so", "good"], ["no"], ["he", "left"], ["we", "sang"]]
    tags = [["O", "B"], ["O", "O"], ["B"], ["B", "O"], ["O", "O"]]
    jsonl(tmp_path, tags, words=words)
    with pytest.raises(TaskFileError, match=r"beside `tokens`.*lengths in `words`"):
        load_tasks(tmp_path)
    assert load_tasks(tmp_path, tokens="words")[0].kind == "tagging"
    assert load_tasks(tmp_path, kind="multilabel")[0].kind == "multilabel"


def test_sets_of_labels_are_written_sampled_and_encoded(tmp_path: Path) -> None:
    tasks = load_tasks(jsonl(tmp_path / "films", SETS * 4))
    write_tasks(tasks, tmp_path / "copy")
    assert load_tasks(tmp_path / "copy").content == tasks.content
    few = sample_rows(tasks, {"train": 7})
    assert few[0].splits["train"].targets.shape == (7, 3)
    encoded = WordEncoding().encode(tasks, cache=tmp_path / "cache")[0]
    again = WordEncoding().encode(tasks, cache=tmp_path / "cache")[0]
    assert encoded.outputs == 3
    assert np.array_equal(again.splits["train"].targets.numpy(), np.array(MARKS * 4))
    assert len(encoded.splits["train"].targets.untyped_storage()) == 60  # a byte each
    question = Question.of(tasks[0])
    unknown = question.unanswered(question.read([{"text": "a new film"}])[0])
    assert unknown.splits["rows"].targets.tolist() == [[MISSING] * 3]


@pytest.mark.parametrize(
    "targets", [SETS, np.array(MARKS), torch.tensor(MARKS)], ids=["sets", "marks", "tensor"]
)
def test_label_sets_of_ones_own_inputs_are_lists_or_arrays_of_marks(targets: Any) -> None:
    tasks, encoding = held_tasks({"films": {"train": (np.eye(5), targets)}})
    assert (tasks[0].kind, len(tasks[0].labels)) == ("multilabel", 3)
    assert encoding.encode(tasks)[0].splits["train"].targets.tolist() == MARKS


def test_a_table_without_splits_shares_out_its_rarest_labels(tmp_path: Path) -> None:
    rows = [
        {"task": "films", "text": f"a film number {place}", "label": ["rare"] if place < 10 else []}
        for place in range(100)
    ]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (task,) = load_tasks(tmp_path / "all.jsonl")
    having = {name: int((split.targets == 1).sum()) for name, split in task.splits.items()}
    assert having == {"train": 8, "dev": 1, "test": 1}
