"""`taskmix check` says what a folder holds, and every command takes the flags that say otherwise."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from taskmix.cli._printing._display import say_flags_of
from taskmix.tasks import load_tasks

from .running import run_cli

COLUMNS = "id,day,review,shelf,opinion"


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    rows = [
        f"{n},2021-03-{1 + n % 28:02},the film number {n} was seen by us,{'abc'[n % 3]},{n * 7 % 5}"
        for n in range(300)
    ]
    (tmp_path / "reviews.csv").write_text("\n".join([COLUMNS, *rows]) + "\n")
    return tmp_path / "reviews.csv"


def test_everything_is_said_and_the_next_line_has_the_flags(
    reviews: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("check", reviews, "--label", "opinion", "--ignore", "day", "--metric", "macro_f1")
    assert run_cli(monkeypatch, *words) == 0
    out = capsys.readouterr().out
    assert "Read 300 rows of 1 file" in out
    assert "opinion (5 classes)" in out
    assert "macro_f1" in out
    assert "left out (as asked)" in out
    assert "did you mean `--task-column shelf` (3 values)?" in out
    assert "`review` holds sentences and was taken for the text; `--text ...`" in out
    last = out.strip().splitlines()[-1]
    assert shlex.split(last.removeprefix("Next: ")) == [
        *("taskmix", "advise", str(reviews), "--label", "opinion", "--ignore", "day"),
        *("--metric", "macro_f1"),
    ]


def test_the_document_has_columns_guesses_findings_and_the_next_line(
    reviews: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "check", reviews, "--label", "opinion", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found["columns"]] == [
        *("id", "date", "text", "category", "number"),
    ]
    assert found["tasks"][0]["sizes"] == {"train": 240, "dev": 30, "test": 30}
    assert any("`--task-column shelf`" in note for note in found["notes"])
    assert found["next"] == f"taskmix advise {reviews} --label opinion"


def test_a_question_about_the_label_says_the_flag(
    reviews: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "check", reviews) == 2
    said = capsys.readouterr().err
    assert "`review` (text), `shelf` (category, 3 values), `opinion` (number, 5 values)" in said
    assert "Name the column with `--label`." in said


@pytest.mark.parametrize("words", [["nowhere/"], ["digits"]])
def test_what_cannot_be_read_is_one_sentence_and_exit_code_2(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_cli(monkeypatch, "check", *words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("taskmix: ")


def test_warnings_leave_the_exit_code_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{n % 2},{n % 50},{'ab'[n % 2]}" for n in range(200)]
    (tmp_path / "rows.csv").write_text("copy,x,label\n" + "\n".join(rows) + "\n")
    assert run_cli(monkeypatch, "check", tmp_path / "rows.csv") == 0
    out = capsys.readouterr().out
    assert "Warnings:" in out
    assert "the column `copy` tells 100% of them" in out


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ('did you mean `task_column="field"` (2 values)?', "`--task-column field`"),
        ('did you mean `task_column="two words"`?', "`--task-column 'two words'`"),
        ("`features=...` keeps it", "`--features ...` keeps it"),
        ("the column `label` stays", "the column `label` stays"),
    ],
)
def test_notes_name_arguments_in_python_and_flags_on_the_command_line(note: str, said: str) -> None:
    assert said in say_flags_of(note)


@pytest.mark.parametrize(
    ("flags", "columns", "kind"),
    [
        ("--features x --features id", ["x", "id"], "classification"),
        ("--ignore x --ignore part --ignore number", ["copy"], "classification"),
        ("--label number --ignore label --ignore part", ["copy", "x"], "regression"),
        ("--label x --kind regression --features copy", ["copy"], "regression"),
        ("--split-column part --ignore x", ["copy", "number"], "classification"),
    ],
)
def test_training_reads_columns_as_the_flags_say(
    flags: str,
    columns: list[str],
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        f"{n},{'uv'[n % 3 % 2]},{n % 7},{n / 3},{'ab'[n % 2]},{'train' if n % 4 else 'test'}"
        for n in range(80)
    ]
    (tmp_path / "rows.csv").write_text("id,copy,x,number,label,part\n" + "\n".join(rows) + "\n")
    given = ["train", tmp_path / "rows.csv", "--out", tmp_path / "study", "--steps", "2"]
    assert run_cli(monkeypatch, *given, *flags.split(), "--json") == 0
    (reading,) = json.loads(capsys.readouterr().out)["readings"]
    assert (reading["columns"], reading["kind"]) == (columns, kind)


def test_the_same_names_are_keywords_of_python(reviews: Path) -> None:
    tasks = load_tasks(reviews, label="opinion", text="review", ignore="day", kind="regression")
    assert (tasks[0].kind, tasks[0].columns) == ("regression", ("review",))


def test_a_kind_or_a_metric_that_is_none_is_refused_by_its_flag(
    reviews: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag, value in (("--kind", "guessing"), ("--metric", "beauty")):
        assert run_cli(monkeypatch, "check", reviews, "--label", "opinion", flag, value) == 2
        assert value in capsys.readouterr().err
