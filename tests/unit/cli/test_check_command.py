"""`taskmix check` says what a folder holds, and every command takes the flags that say otherwise."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from taskmix.tasks import load_tasks

from .running import Program

COLUMNS = "id,day,review,shelf,opinion"


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    rows = [
        f"{n},2021-03-{1 + n % 28:02},the film number {n} was seen by us,{'abc'[n % 3]},{n * 7 % 5}"
        for n in range(300)
    ]
    (tmp_path / "reviews.csv").write_text("\n".join([COLUMNS, *rows]) + "\n")
    return tmp_path / "reviews.csv"


def test_everything_is_said_and_the_next_line_has_the_flags(reviews: Path, cli: Program) -> None:
    words = ("check", reviews, "--label", "opinion", "--ignore", "day", "--metric", "macro_f1")
    out = cli.out(*words)
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


def test_the_next_line_of_sequences_and_of_mixtures_is_another_command(
    tmp_path: Path, cli: Program
) -> None:
    def next_line(*words: str | Path) -> str:
        assert cli("check", *words) == 0
        return cli.said().out.strip().splitlines()[-1]

    sequences, runs = tmp_path / "sequences", tmp_path / "runs.csv"
    for name in ("ada", "ben"):
        (sequences / name).mkdir(parents=True)
        (sequences / name / "train.txt").write_text(f"x y {name}\n" * 30)
    assert next_line(sequences) == f"Next: taskmix sequences {sequences}"
    rows = [f"{n / 60},{1 - n / 60},{3 - n / 40}" for n in range(60)]
    runs.write_text("\n".join(["web,code,loss", *rows]) + "\n")
    asked = ("--label", "loss")
    assert next_line(runs, *asked) == f"Next: taskmix mix {runs} --metrics-columns loss"
    runs.write_text("\n".join(["web,code,loss", *rows, "0.5,0.6,1"]) + "\n")
    assert next_line(runs, *asked) == f"Next: taskmix advise {runs} --label loss"


def test_the_document_has_columns_guesses_findings_and_the_next_line(
    reviews: Path, cli: Program
) -> None:
    found = cli.json("check", reviews, "--label", "opinion", "--json")
    assert [each["kind"] for each in found["columns"]] == [
        *("id", "date", "text", "category", "number")
    ]
    assert found["tasks"][0]["sizes"] == {"train": 240, "dev": 30, "test": 30}
    assert any("`--task-column shelf`" in note for note in found["notes"])
    assert found["next"] == f"taskmix advise {reviews} --label opinion"


def test_a_question_about_the_label_says_the_flag(reviews: Path, cli: Program) -> None:
    said = cli.refused("check", reviews)
    assert "`review` (text), `shelf` (category, 3 values), `opinion` (number, 5 values)" in said
    assert "Name the column with `--label`." in said


def test_warnings_leave_the_exit_code_0(tmp_path: Path, cli: Program) -> None:
    rows = [f"{n % 2},{n % 50},{'ab'[n % 2]}" for n in range(200)]
    (tmp_path / "rows.csv").write_text("copy,x,label\n" + "\n".join(rows) + "\n")
    out = cli.out("check", tmp_path / "rows.csv")
    assert "Warnings:" in out
    assert "the column `copy` tells 100% of them" in out


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
    flags: str, columns: list[str], kind: str, tmp_path: Path, cli: Program
) -> None:
    rows = [
        f"{n},{'uv'[n % 3 % 2]},{n % 7},{n / 3},{'ab'[n % 2]},{'train' if n % 4 else 'test'}"
        for n in range(80)
    ]
    (tmp_path / "rows.csv").write_text("id,copy,x,number,label,part\n" + "\n".join(rows) + "\n")
    given = ["train", tmp_path / "rows.csv", "--out", tmp_path / "study", "--steps", "2"]
    (reading,) = cli.json(*given, *flags.split(), "--json")["readings"]
    assert (reading["columns"], reading["kind"]) == (columns, kind)


def test_the_same_names_are_keywords_of_python(reviews: Path) -> None:
    tasks = load_tasks(reviews, label="opinion", text="review", ignore="day", kind="regression")
    assert (tasks[0].kind, tasks[0].columns) == ("regression", ("review",))


def test_a_kind_or_a_metric_that_is_none_is_refused_by_its_flag(
    reviews: Path, cli: Program
) -> None:
    for flag, value in (("--kind", "guessing"), ("--metric", "beauty")):
        assert value in cli.refused("check", reviews, "--label", "opinion", flag, value)
