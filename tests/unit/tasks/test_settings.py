"""Settings files and `task.toml`: what they say, and what they must not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskmix.errors import InputError, TaskFileError
from taskmix.tasks import load_tasks


def jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def text_task(folder: Path) -> None:
    rows = [{"text": f"{n}", "group": "abcd"[n % 4], "score": n / 7} for n in range(24)]
    for split in ("train", "dev"):
        jsonl(folder / f"{split}.jsonl", rows)


def settings_file(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


def test_task_toml_names_what_cannot_be_found_out(tmp_path: Path) -> None:
    text_task(tmp_path / "a")
    (tmp_path / "a" / "task.toml").write_text('label = "group"\nmetric = "macro_f1"\n')
    text_task(tmp_path / "b")
    (tmp_path / "b" / "task.toml").write_text('label = "score"\nmetric = "pearson"\n')
    tasks = load_tasks(tmp_path)
    assert [task.metric for task in tasks] == ["macro_f1", "pearson"]
    assert tasks["a"].labels == ("a", "b", "c", "d")


def test_a_task_toml_above_holds_for_all_and_the_inner_one_goes_before_it(tmp_path: Path) -> None:
    for name in "ab":
        text_task(tmp_path / name)
    (tmp_path / "task.toml").write_text('label = "group"\nmetric = "macro_f1"\n')
    (tmp_path / "b" / "task.toml").write_text('metric = "matthews"\n')
    assert [task.metric for task in load_tasks(tmp_path)] == ["macro_f1", "matthews"]
    assert [task.metric for task in load_tasks(tmp_path, metric="auc")] == ["auc", "auc"]


def test_entries_make_tasks_of_the_rows_with_their_labels(tmp_path: Path) -> None:
    text_task(tmp_path / "news")
    path = settings_file(
        tmp_path,
        """
        [[task]]
        name = "second"
        folder = "news"
        label = "group"
        labels = ["d", "a"]
        [[task]]
        name = "first"
        folder = "news"
        label = "group"
        labels = ["b", "c"]
        """,
    )
    tasks = load_tasks(tmp_path, settings=path)
    assert tasks.names == ("second", "first")
    assert tasks["second"].labels == ("d", "a")
    assert tasks["second"].sizes == {"train": 12, "dev": 12}
    assert tasks["first"].source != tasks["second"].source
    assert load_tasks(tmp_path, settings=path, tasks=["first"]).names == ("first",)
    with pytest.raises(InputError, match="`third` should be one of the tasks"):
        load_tasks(tmp_path, settings=path, tasks=["third"])


def test_entries_that_differ_in_their_target_share_their_inputs(tmp_path: Path) -> None:
    text_task(tmp_path)
    path = settings_file(
        tmp_path,
        """
        [[task]]
        name = "score"
        label = "score"
        metric = "spearman"
        [[task]]
        name = "some"
        label = "group"
        labels = ["a"]
        [[task]]
        name = "group"
        label = "group"
        """,
    )
    tasks = load_tasks(tmp_path, settings=path)
    assert tasks.names == ("score", "some", "group")
    assert tasks["score"].source == tasks["group"].source != tasks["some"].source
    assert tasks["score"].splits["dev"].inputs is tasks["group"].splits["dev"].inputs
    assert tasks["score"].metric == "spearman"


def test_targets_of_other_entries_are_no_features(tmp_path: Path) -> None:
    rows = "".join(f"{n * n},{n % 2},{n % 3}\n" for n in range(30))
    (tmp_path / "t.csv").write_text("x,a,b\n" + rows)
    path = settings_file(
        tmp_path,
        '[[task]]\nname = "a"\nfile = "t.csv"\nlabel = "a"\nextend_labels = true\n'
        '[[task]]\nname = "b"\nfile = "t.csv"\nlabel = "b"\nignore = ["y"]\n',
    )
    for task in load_tasks(tmp_path, settings=path):
        assert task.splits["train"].inputs.column_names == ["x"]


def test_numbers_and_truth_may_be_labels_without_quotes(tmp_path: Path) -> None:
    rows = [{"text": f"{n}", "3": n % 3, "sure": n % 2 == 0} for n in range(24)]
    jsonl(tmp_path / "train.jsonl", rows)
    (tmp_path / "task.toml").write_text("label = 3\nlabels = [1, 0]\n")
    assert load_tasks(tmp_path)[0].labels == ("1", "0")
    (tmp_path / "task.toml").write_text('label = "sure"\nlabels = [true, false]\n')
    assert load_tasks(tmp_path)[0].labels == ("true", "false")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('lable = "x"', "should be among answer, columns, extend_labels, .* Found 'lable'"),
        ("label = 1.5", "`label` of task.toml should be a list of names. Found 1.5"),
        ("label = []", "should be a list of names"),
        ("metric = 3", "`metric` of task.toml should be text"),
        ('metric = "acuracy"', "should be the name of a metric"),
        ('kind = "ranking"', "`kind` should be one of classification, multilabel"),
        ('symbols = "bytes"', "`symbols` should be one of words, characters"),
        ('extend_labels = "yes"', "should be true or false"),
        ('text = ""', "should be text"),
        ("a = 1\nb = ]", r"should be TOML. Found 'Invalid value' in .*task.toml, line 2"),
        ("label = 'x'\nlabel = 'y'", "should be TOML"),
        ("x = " + "[" * 5000, "should be TOML"),
    ],
)
def test_a_bad_task_toml_gets_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    text_task(tmp_path)
    (tmp_path / "task.toml").write_text(text)
    with pytest.raises(TaskFileError, match=sentence) as caught:
        load_tasks(tmp_path)
    assert caught.value.path == tmp_path / "task.toml"
    assert "task.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"should have a table `\[\[task\]\]` for each task. Found none"),
        ("task = 3", "Found 3"),
        ("[other]", "should be among task. Found 'other'"),
        ("[[task]]\nlabel = 'x'", r"should have a `name`. Found none in \[\[task\]\] number 1"),
        ("[[task]]\nname = 5", r"`name` of \[\[task\]\] number 1 should be text. Found 5"),
        ("[[task]]\nname = 'a'\n[[task]]\nname = 'a'", "should differ. Found 'a' twice"),
        ("[[task]]\nname = 'a'\ncolour = 'red'", r"Keys of \[\[task\]\] number 1"),
        ("[[task]]\nname = 'a'\nmetric = 'x'", r"\[\[task\]\] number 1"),
    ],
)
def test_a_bad_settings_file_gets_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    text_task(tmp_path)
    with pytest.raises(TaskFileError, match=sentence):
        load_tasks(tmp_path, settings=settings_file(tmp_path, text))


@pytest.mark.parametrize("key", ["folder", "file"])
@pytest.mark.parametrize("path", ["../other", "/etc", "a/../../other", "link"])
def test_a_path_that_leaves_the_source_is_refused(tmp_path: Path, key: str, path: str) -> None:
    text_task(tmp_path / "other")
    text_task(tmp_path / "source" / "a")
    (tmp_path / "source" / "link").symlink_to(tmp_path / "other")
    settings = settings_file(tmp_path, f'[[task]]\nname = "a"\n{key} = "{path}"\nlabel = "group"\n')
    with pytest.raises(TaskFileError, match="should lie inside the source folder"):
        load_tasks(tmp_path / "source", settings=settings)
