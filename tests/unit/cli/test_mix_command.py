"""`taskmix mix` from files to answers: what is printed and written, and how bad input ends."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taskmix.mixtures import learn_mixtures, read_mixtures, read_mixtures_document
from taskmix.plans import Plan

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


def test_everything_that_is_asked_for_is_printed_and_written(
    files: tuple[Path, Path], tmp_path: Path, cli: Program
) -> None:
    asked = write_rows(tmp_path / "asked.csv", ["name", "web", "code"], [["half", 0.5, 0.5]])
    plan, page, document = (tmp_path / name for name in ("plan.json", "mix.html", "mix.json"))
    words = ["mix", *files, "--at-most", "code=0.3", "--group", "web+books>=0.6"]
    words += ["--front", "prose,python", "--next", "2", "--predict", asked]
    words += ["--write-plan", plan, "--page", page, "--document", document]
    assert cli(*words) == 0
    shown = cli.said()
    assert shown.out.startswith("Read 24 runs, 3 domains, 2 metrics.\nTrain on ")
    for part in ("The mixture to train on", "equal shares", "Runs to do next", "half", "prose"):
        assert part in shown.out, part
    assert f"Wrote {plan}." in shown.out
    assert "... looking for the best mixture" in shown.err
    told = read_mixtures_document(document)
    shares = {row.domain: row.share for row in told.domains}
    assert shares["code"] <= 0.3 + 1e-6
    assert told.command.startswith("taskmix mix ")
    assert told.predictions is not None
    assert told.predictions[0].name == "half"
    assert Plan.load(plan).overall == pytest.approx(
        {name: share for name, share in shares.items() if share > 5e-4}, abs=2e-3
    )
    assert 'id="front"' in page.read_text()
    again = learn_mixtures(read_mixtures(*files), target="prose")
    printed = cli.json("mix", *files, "--target", "prose", "--json")
    same = replace(again.document, command=printed["command"], seconds=printed["seconds"])
    assert same.as_json() == printed, "Python and the command find the same"


def test_a_plan_of_a_mixture_is_exported_like_any_other(
    files: tuple[Path, Path], tmp_path: Path, cli: Program
) -> None:
    plan = tmp_path / "plan.json"
    assert cli("mix", *files, "--write-plan", plan) == 0
    out = tmp_path / "weights.json"
    assert cli("plan", "export", plan, "--to", "datasets", "--out", out) == 0
    assert "web" in "".join(path.read_text() for path in tmp_path.glob("weights*"))


def test_repeated_text_counts_less_and_how_often_it_is_read_is_said(
    files: tuple[Path, Path], tmp_path: Path, cli: Program
) -> None:
    supply = write_rows(
        tmp_path / "supply.csv",
        ["domain", "tokens"],
        [["web", "100B"], ["code", "1M"], ["books", "1B"]],
    )
    free = ["mix", *files, "--target", "python", "--json"]
    assert cli(*free) == 0
    before = {row["domain"]: row for row in json.loads(cli.said().out)["domains"]}
    told = cli.json(*free, "--supply", supply, "--budget", "10B")
    after = {row["domain"]: row for row in told["domains"]}
    assert after["code"]["passes"] == pytest.approx(after["code"]["share"] * 1e4, rel=1e-3)
    assert before["code"].get("passes") is None
    assert after["web"]["passes"] == pytest.approx(after["web"]["share"] / 10, rel=1e-3)
    assert "natural shares" in [row["name"] for row in told["compared"]]
    worth = (*free, "--supply", supply, "--budget", "10B", "--repeat-value", "0")
    worthless = cli.json(*worth)
    assert worthless["compared"][0]["target"]["value"] > told["compared"][0]["target"]["value"]
    said = refused(cli, *files, "--repeat-value", "learn")
    assert "`--repeat-value` should be a number" in said


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


def test_changed_domains_are_applied_before_anything_is_learned(
    files: tuple[Path, Path], tmp_path: Path, cli: Program
) -> None:
    changes = tmp_path / "changes.toml"
    changes.write_text('[merges]\ntext = ["web", "books"]\n')
    told = cli.json("mix", *files, "--changes", changes, "--json")
    assert [row["domain"] for row in told["domains"]] == ["text", "code"]


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
