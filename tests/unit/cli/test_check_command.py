"""`taskmix check` says what a folder holds, and every command takes the flags that say otherwise."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

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


def test_a_question_about_the_label_says_the_flag(reviews: Path, cli: Program) -> None:
    said = cli.refused("check", reviews)
    assert "`review` (text), `shelf` (category, 3 values), `opinion` (number, 5 values)" in said
    assert "Name the column with `--label`." in said


@pytest.mark.parametrize(
    ("flags", "columns", "kind"),
    [
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
