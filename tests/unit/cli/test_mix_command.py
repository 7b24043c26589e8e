"""`taskmix mix` from files to answers: what is printed and written, and how bad input ends."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taskmix.errors import InputError, OptionError
from taskmix.mixtures import learn_mixtures, read_mixtures, read_mixtures_document
from taskmix.plans import Plan

from .running import run_cli

sys.path.insert(0, str(Path(__file__).parents[1] / "mixtures"))

from mixture_files import change_cell, drop_rows, write_rows, write_table
from quick_forecast import be_quick

from taskmix.cli._options._mixtures import amount, by_name, read_groups, read_supply


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    be_quick(monkeypatch)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_table(tmp_path)


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object
) -> str:
    """The sentence of a command that ends with code 2."""
    assert run_cli(monkeypatch, "mix", *map(str, words)) == 2
    said = capsys.readouterr()
    assert not said.out or said.out.startswith("Read ")
    return " ".join(said.err.split())


def test_everything_that_is_asked_for_is_printed_and_written(
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = write_rows(tmp_path / "asked.csv", ["name", "web", "code"], [["half", 0.5, 0.5]])
    plan, page, document = (tmp_path / name for name in ("plan.json", "mix.html", "mix.json"))
    words = ["mix", *files, "--at-most", "code=0.3", "--group", "web+books>=0.6"]
    words += ["--front", "prose,python", "--next", "2", "--predict", asked]
    words += ["--write-plan", plan, "--page", page, "--document", document]
    assert run_cli(monkeypatch, *words) == 0
    shown = capsys.readouterr()
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
    assert run_cli(monkeypatch, "mix", *files, "--target", "prose", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    same = replace(again.document, command=printed["command"], seconds=printed["seconds"])
    assert same.as_json() == printed, "Python and the command find the same"


def test_a_plan_of_a_mixture_is_exported_like_any_other(
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = tmp_path / "plan.json"
    assert run_cli(monkeypatch, "mix", *files, "--write-plan", plan) == 0
    out = tmp_path / "weights.json"
    assert run_cli(monkeypatch, "plan", "export", plan, "--to", "datasets", "--out", out) == 0
    assert "web" in "".join(path.read_text() for path in tmp_path.glob("weights*"))


def test_repeated_text_counts_less_and_how_often_it_is_read_is_said(
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    supply = write_rows(
        tmp_path / "supply.csv",
        ["domain", "tokens"],
        [["web", "100B"], ["code", "1M"], ["books", "1B"]],
    )
    free = ["mix", *files, "--target", "python", "--json"]
    assert run_cli(monkeypatch, *free) == 0
    before = {row["domain"]: row for row in json.loads(capsys.readouterr().out)["domains"]}
    assert run_cli(monkeypatch, *free, "--supply", supply, "--budget", "10B") == 0
    told = json.loads(capsys.readouterr().out)
    after = {row["domain"]: row for row in told["domains"]}
    assert after["code"]["passes"] == pytest.approx(after["code"]["share"] * 1e4, rel=1e-3)
    assert before["code"].get("passes") is None
    assert after["web"]["passes"] == pytest.approx(after["web"]["share"] / 10, rel=1e-3)
    assert "natural shares" in [row["name"] for row in told["compared"]]
    words = ("--repeat-value", "learn", "--supply", supply, "--budget", "10B")
    assert "`--run-tokens`" in refused(monkeypatch, capsys, *files, *words)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda r, m: change_cell(r, 3, "web", 5), "The shares of a run should sum to 1"),
        (
            lambda r, m: change_cell(r, 3, "web", -1),
            "Shares should be finite numbers of at least 0",
        ),
        (lambda r, m: change_cell(r, 3, "web", "x"), "Found 'x' in ratios.csv, row 5"),
        (lambda r, m: change_cell(m, 3, "run", "r2"), "run `r2` 2 times"),
        (lambda r, m: drop_rows(m, 5), "at least 8 runs to be learned from. Found 5"),
        (lambda r, m: m.unlink(), "metrics.csv"),
        (lambda r, m: m.write_text("run,a\n"), "a row for each run"),
    ],
)
def test_bad_files_end_in_one_sentence_and_write_nothing(
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spoil: object,
    words: str,
) -> None:
    assert callable(spoil)
    spoil(*files)
    before = sorted(tmp_path.iterdir())
    outputs = ("--page", tmp_path / "mix.html", "--write-plan", tmp_path / "plan.json")
    assert words in refused(monkeypatch, capsys, *files, *outputs)
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
        (("--supply", "web=1B,code=1B,books=1B"), "`--budget`"),
        (("--parameters", "1B"), "`--parameters` should come with a column"),
        (("--maximise", "physics"), "`--maximise` should name metrics. Found `physics`"),
        (("--run-column", "name"), "`--run-column` should be a column of ratios.csv. Found `name`"),
        (("--weights", "prose=-1"), "The weight of a metric should be a number of at least 0"),
    ],
)
def test_options_that_cannot_be_are_refused_by_their_flags(
    files: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    words: str,
) -> None:
    assert words in refused(monkeypatch, capsys, *files, *options)


def test_outputs_are_looked_at_before_anything_is_read(
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text('{"thesis": 1}')
    for flag in ("--write-plan", "--page", "--document"):
        said = refused(monkeypatch, capsys, tmp_path / "not there.csv", flag, mine)
        assert "over one that taskmix wrote" in said
    assert mine.read_text() == '{"thesis": 1}'
    same = ("--write-plan", tmp_path / "a.json", "--document", tmp_path / "a.json")
    assert "different files" in refused(monkeypatch, capsys, *files, *same)


def test_a_study_of_ours_is_a_table_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert run_cli(monkeypatch, "mix", study.path) == 0
    assert "Read 9 runs, 2 domains, 2 metrics." in capsys.readouterr().out
    said = refused(monkeypatch, capsys, study.path, tmp_path / "metrics.csv")
    assert "should be left out where" in said


def test_changed_domains_are_applied_before_anything_is_learned(
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = tmp_path / "changes.toml"
    changes.write_text('[merges]\ntext = ["web", "books"]\n')
    assert run_cli(monkeypatch, "mix", *files, "--changes", changes, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["domain"] for row in told["domains"]] == ["text", "code"]


def test_numbers_bounds_and_groups_are_read_from_words(tmp_path: Path) -> None:
    assert amount("1.5B", "--budget") == 1.5e9
    assert amount("2e9", "--budget") == 2e9
    assert by_name(["a=1,b=2k", "c=0.5"], "--x", "a=1") == {"a": 1, "b": 2000, "c": 0.5}
    (most,) = read_groups(["code + math <= 0.4"])
    assert (most.domains, most.at_least, most.at_most) == (("code", "math"), 0.0, 0.4)
    (least,) = read_groups(["wiki>=0.1"])
    assert (least.domains, least.at_least) == (("wiki",), 0.1)
    assert read_supply("web=1B,code=2e8") == {"web": 1e9, "code": 2e8}
    wide = tmp_path / "wide.csv"
    with wide.open("w", newline="") as file:
        csv.writer(file).writerows([["web", "code"], ["1B", "5"]])
    assert read_supply(str(wide)) == {"web": 1e9, "code": 5.0}
    with pytest.raises(
        OptionError, match=r"should be a number, such as 0.3, 2e9 or 2B. Found 'much'"
    ):
        amount("much", "--budget")
    wide.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(InputError, match="the columns `domain` and `tokens`"):
        read_supply(str(wide))
