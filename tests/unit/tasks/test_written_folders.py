"""Folders whose tasks are text to be written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from taskmix.errors import OptionError, TaskFileError
from taskmix.tasks import Question, TaskSet, load_tasks, write_tasks


def folder(path: Path, rows: list[dict[str, Any]], settings: str = "") -> Path:
    """A task folder with the same rows in train and dev."""
    path.mkdir(exist_ok=True)
    for name in ("train", "dev"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (path / f"{name}.jsonl").write_text(text)
    if settings:
        (path / "task.toml").write_text(settings)
    return path


def rows_of(tasks: TaskSet) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tasks[0].splits["train"].inputs.to_pylist()
    return found


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("prompt", "answer"),
        ("instruction", "response"),
        ("instruction", "output"),
        ("prompt", "completion"),
        ("question", "answer"),
    ],
)
def test_prompts_and_answers_are_known_by_their_usual_names(
    tmp_path: Path, prompt: str, answer: str
) -> None:
    rows = [{prompt: "Is it big?", answer: "yes", "id": 7}]
    tasks = load_tasks(folder(tmp_path / "size", rows))
    assert rows_of(tasks) == [{"prompt": "Is it big?", "answer": "yes"}]
    assert tasks[0].kind == "generation"
    assert str(tasks[0].reading) == (
        f"prompt `{prompt}`; answer `{answer}`; exact match; without `id` (beside the prompt)"
    )


def test_an_instruction_has_its_input_after_a_blank_line(tmp_path: Path) -> None:
    rows = [
        {"instruction": "Add.", "input": "1 2", "output": "3"},
        {"instruction": "Greet.", "input": "", "output": "hi"},
    ]
    tasks = load_tasks(folder(tmp_path / "alpaca", rows))
    assert [row["prompt"] for row in rows_of(tasks)] == ["Add.\n\n1 2", "Greet."]
    assert tasks[0].columns == ("instruction", "input")


def test_the_last_message_of_a_conversation_is_the_answer(tmp_path: Path) -> None:
    user = {"role": "user", "content": "hi"}
    rows = [{"messages": [user, {"role": "assistant", "content": "yo"}]}]
    tasks = load_tasks(folder(tmp_path / "chat", rows))
    assert rows_of(tasks) == [{"prompt": [user], "answer": "yo"}]
    assert str(tasks[0].reading) == "prompt `messages`; exact match"
    question = Question.of(tasks[0])
    for new in ({"messages": [user]}, rows[0]):  # an answer that is there is not read
        assert question.read([new])[0].to_pylist() == [{"prompt": [user]}]
    with pytest.raises(TaskFileError, match=r"should end with a message of the assistant.*'user'"):
        load_tasks(folder(tmp_path / "chat", [{"messages": [user]}]))
    with pytest.raises(TaskFileError, match="each with a `role` and a `content`"):
        load_tasks(folder(tmp_path / "chat", [{"messages": [{"role": "user", "text": "x"}]}]))


def test_settings_name_the_columns_and_the_metric(tmp_path: Path) -> None:
    rows = [{"ask": "Big?", "hint": "no", "say": "yes", "label": "x"}]
    settings = 'prompt = ["ask", "hint"]\nanswer = "say"\nmetric = "word_f1"\n'
    tasks = load_tasks(folder(tmp_path / "size", rows, settings))
    assert rows_of(tasks) == [{"prompt": "Big?\n\nno", "answer": "yes"}]
    assert tasks[0].metric == "word_f1"
    same = load_tasks(folder(tmp_path / "other", rows), prompt=["ask"], answer="say")
    assert rows_of(same) == [{"prompt": "Big?", "answer": "yes"}]
    assert Question.of(tasks[0]).read([{"ask": "Big?", "hint": ""}])[0].to_pylist() == [
        {"prompt": "Big?"}
    ]


def test_texts_and_lines_are_passages_where_the_kind_says_so(tmp_path: Path) -> None:
    tasks = load_tasks(folder(tmp_path / "books", [{"text": "Once."}], 'kind = "language"\n'))
    assert (tasks[0].kind, tasks[0].metric) == ("language", "bits_per_byte")
    assert str(tasks[0].reading) == "passage `text`; bits per byte"
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "train.txt.gz").write_bytes(gzip.compress("one\n\ntwo é\n".encode()))
    (lines / "dev.txt").write_text("three\n")
    found = load_tasks(lines, kind="language")
    assert rows_of(found) == [{"text": "one"}, {"text": "two é"}]
    assert load_tasks(lines)[0].kind == "sequences", "without a word they are sequences, as before"
    with pytest.raises(TaskFileError, match="There should be a column named label"):
        load_tasks(folder(tmp_path / "slip", [{"text": "Once."}]))


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ('kind = "generation"\n', "columns for the prompt and for the answer"),
        ('kind = "generation"\nprompt = "a"\nanswer = "c"\n', "There should be a column `c`"),
        ('kind = "language"\n', "One column should hold the text of a language task"),
    ],
)
def test_columns_that_are_missing_are_told_in_a_sentence(
    tmp_path: Path, settings: str, reason: str
) -> None:
    with pytest.raises(TaskFileError, match=reason):
        load_tasks(folder(tmp_path / "odd", [{"a": "x", "b": "y"}], settings))


@pytest.mark.parametrize(
    ("rows", "settings"),
    [
        ({"prompt": "a", "answer": "b"}, 'metric = "accuracy"\n'),
        ({"text": "a"}, 'kind = "language"\nmetric = "exact_match"\n'),
        ({"text": "a"}, 'kind = "language"\nmetric = "rouge_l"\n'),
        ({"x": 1, "label": "b"}, 'metric = "exact_match"\n'),
    ],
)
def test_a_metric_that_does_not_fit_is_refused(
    tmp_path: Path, rows: dict[str, Any], settings: str
) -> None:
    with pytest.raises(OptionError, match="`metric` should fit the kind of task"):
        load_tasks(folder(tmp_path / "odd", [rows], settings))


def test_tasks_to_write_are_written_to_folders_and_read_again(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    folder(source / "ask", [{"prompt": "Big?", "answer": "yes"}], 'metric = "rouge_l"\n')
    folder(source / "books", [{"text": "Once."}], 'kind = "language"\n')
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    folder(source / "chat", [{"messages": talk}])
    tasks = load_tasks(source)
    write_tasks(tasks, tmp_path / "copy")
    assert load_tasks(tmp_path / "copy").content == tasks.content
