"""`taskmix mix` from files to answers: what is printed and written, and how bad input ends."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taskmix.mixtures import learn_mixtures, read_mixtures

from .running import Program

sys.path.insert(0, str(Path(__file__).parents[1] / "mixtures"))

from mixture_files import change_cell, drop_rows, made_table, write_rows, write_table
from quick_forecast import be_quick


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    be_quick(monkeypatch)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_table(tmp_path)


def refused(cli: Program, *words: object) -> str:
    """The sentence of a command that ends with code 2."""
    assert cli("mix", *map(str, words)) == 2
    said = cli.said()
    assert not said.out or said.out.startswith("Read ")
    return " ".join(said.err.split())


def test_python_and_the_command_find_the_same(files: tuple[Path, Path], cli: Program) -> None:
    again = learn_mixtures(read_mixtures(*files), target="prose")
    printed = cli.json("mix", *files, "--target", "prose", "--json")
    same = replace(again.document, command=printed["command"], seconds=printed["seconds"])
    assert same.as_json() == printed


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda r, m: change_cell(r, 3, "web", 5), "The shares of a run should sum to 1"),
        (
            lambda r, m: change_cell(r, 3, "web", -1),
            "Shares should be finite numbers of at least 0",
        ),
        (lambda r, m: change_cell(r, 3, "web", "x"), "Found 'x' in ratios.csv, line 5"),
        (lambda r, m: change_cell(m, 3, "run", "r2"), "run `r2` 2 times"),
        (lambda r, m: drop_rows(m, 5), "at least 8 runs to be learned from. Found 5"),
        (lambda r, m: m.unlink(), "metrics.csv"),
        (lambda r, m: m.write_text("run,a\n"), "a row for each run"),
    ],
)
def test_bad_files_end_in_one_sentence_and_write_nothing(
    files: tuple[Path, Path], tmp_path: Path, spoil: object, words: str, cli: Program
) -> None:
    assert callable(spoil)
    spoil(*files)
    before = sorted(tmp_path.iterdir())
    outputs = ("--page", tmp_path / "mix.html", "--write-plan", tmp_path / "plan.json")
    assert words in refused(cli, *files, *outputs)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "physics"), "Found `physics`; the table has `prose`, `python`"),
        (("--at-most", "law=0.1"), "`--at-most` should name domains of the table. Found `law`"),
        (("--at-most", "web"), "`--at-most` should be like code=0.3. Found 'web'"),
        (("--at-least", "web=0.7,code=0.7"), "`web` at least 0.7"),
        (("--group", "web+code=1"), '`--group` should be like "code+math<=0.4"'),
        (("--front", "prose"), "`--front` should name two metrics"),
        (("--front", "prose,physics"), "Found `physics`; the table has `prose`, `python`"),
        (("--supply", "web=1B,code=1B,books=1B"), "`--budget`"),
        (
            ("--budget", "much"),
            "`--budget` should be a number, such as 0.3, 2e9 or 2B. Found 'much'",
        ),
        (("--parameters", "1B"), "`--parameters` should come with a column"),
        (("--maximise", "physics"), "`--maximise` should name metrics. Found `physics`"),
        (("--run-column", "name"), "`--run-column` should be a column of ratios.csv. Found `name`"),
        (("--repeat-value", "learn"), "`--repeat-value` should be a number"),
        (("--weights", "prose=-1"), "The weight of a metric should be a number of at least 0"),
    ],
)
def test_options_that_cannot_be_are_refused_by_their_flags(
    files: tuple[Path, Path], options: tuple[str, ...], words: str, cli: Program
) -> None:
    assert words in refused(cli, *files, *options)


def test_outputs_are_looked_at_before_anything_is_read(
    files: tuple[Path, Path], tmp_path: Path, cli: Program
) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text('{"thesis": 1}')
    for flag in ("--write-plan", "--page", "--document"):
        said = refused(cli, tmp_path / "not there.csv", flag, mine)
        assert "over one that taskmix wrote" in said
    assert mine.read_text() == '{"thesis": 1}'
    same = ("--write-plan", tmp_path / "a.json", "--document", tmp_path / "a.json")
    assert "different files" in refused(cli, *files, *same)


def test_a_study_of_ours_is_a_table_too(tmp_path: Path, cli: Program) -> None:
    from taskmix.engine import DigitsSource, Run, execute
    from taskmix.models import Perceptron
    from taskmix.policies import Fixed
    from taskmix.records import Study

    study = Study(tmp_path / "study")
    random = np.random.default_rng(0)
    for seed in range(9):
        shares = tuple(float(share) for share in random.dirichlet([1, 1]))
        run = Run(
            label=f"mixture {seed}",
            source=DigitsSource(),
            architecture=Perceptron(),
            tasks=("half", "loop"),
            policy=Fixed(shares=shares),
            steps=4,
            seed=0,
        )
        execute(run, study)
    assert "Read 9 runs, 2 domains, 2 metrics." in cli.out("mix", study.path)
    said = refused(cli, study.path, tmp_path / "metrics.csv")
    assert "should be left out where" in said


def test_supplies_and_names_that_a_spreadsheet_would_compute_are_read_from_files(
    tmp_path: Path, cli: Program
) -> None:
    files = write_table(tmp_path, replace(made_table(), domains=("'=web", "code", "books")))
    wide = write_rows(tmp_path / "wide.csv", ["'=web", "code", "books"], [["1B", "5", "2e8"]])
    asked = write_rows(tmp_path / "asked.csv", ["run", "'=web", "code"], [["'@0", 0.5, 0.5]])
    told = []
    for supply in (wide, "=web=1B,code=5,books=2e8"):
        words = ("--supply", supply, "--budget", "1.5B", "--predict", asked, "--json")
        assert cli("mix", *map(str, (*files, *words))) == 0
        told.append(json.loads(cli.said().out))
    assert told[0]["domains"] == told[1]["domains"]
    assert told[0]["predictions"][0]["name"] == "@0"
    assert told[0]["predictions"][0]["shares"] == {"=web": 0.5, "code": 0.5, "books": 0.0}
    wide.write_text("a,b\n1,2\n3,4\n")
    said = refused(cli, *files, "--supply", wide, "--budget", "1B")
    assert "the columns `domain` and `tokens`" in said
