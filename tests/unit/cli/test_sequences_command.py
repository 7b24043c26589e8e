from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix import _signals
from taskmix.cli import run_command
from taskmix.records import Study
from taskmix.sequences import MixtureFolder, SequenceMixture, load_mixture

from .running import Program, run_cli

WORDS = {"vowels": "aeiou", "stops": "ptkbd"}


def write_letters(path: Path) -> Path:
    """Four tasks of short strings in one table, two of each kind."""
    generator = np.random.default_rng(0)
    with path.open("w", newline="") as lines:
        rows = csv.writer(lines)
        rows.writerow(["task", "sequence", "split"])
        for number in range(4):
            alphabet = list(WORDS["vowels" if number % 2 else "stops"])
            for place in range(14):
                size = int(generator.integers(2, 7))
                text = "".join(generator.choice(alphabet, size))
                rows.writerow([f"task {number}", text, "train" if place < 8 else "test"])
    return path


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    return write_letters(tmp_path / "letters.csv")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a mixture of them, for tests that only ask it."""
    folder = tmp_path_factory.mktemp("asked")
    letters = write_letters(folder / "letters.csv")
    assert run_cli(*fit(letters, folder / "out", "--no-baselines")) == 0
    return folder / "out"


def fit(letters: Path, out: Path, *words: str) -> tuple[str | Path, ...]:
    """The words of a command that fits two generators."""
    given = ("--characters", "--generator", "markov", "--generators", "2", "--restarts", "1")
    return ("sequences", letters, *given, "--out", out, *words)


def test_a_folder_becomes_a_model_a_page_and_figures_that_are_not_fitted_again(
    monkeypatch: pytest.MonkeyPatch, letters: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "out"
    found = cli.json(*fit(letters, out, "--json"))
    assert found["rows"][0]["model"] == "shared generators"
    assert len(found["rows"]) == 6
    assert set(found["theta"]) == {f"task {number}" for number in range(4)}
    pooled = next(row for row in found["rows"] if row["model"] == "one pooled model")
    assert pooled["gain"]["value"] > 0
    page = (out / "report.html").read_text()
    assert "<svg" in page
    assert "<script" not in page
    (path,) = out.glob("model-*.safetensors")
    shares = load_mixture(path).theta_
    assert shares[0].argmax() == shares[2].argmax() != shares[1].argmax()

    def refuse(*words: Any, **options: Any) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(SequenceMixture, "fit_states", refuse)
    assert cli.json(*fit(letters, out, "--json")) == found
    words = ("--predict", "ae", "--task", "task 1", "--json")
    ahead = cli.json(*fit(letters, out, *words))
    shares = {row["symbol"]: row["probability"] for row in ahead["next"]}
    assert len(shares) == 8
    assert sum(shares.get(symbol, 0.0) for symbol in (*"aeiou", "(end)")) > 0.8
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert ahead["completion"][:2] == ["a", "e"]


def test_batches_are_learned_from_and_told_pass_by_pass(
    letters: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("--batch-size", "8", "--iterations", "4", "--no-baselines", "--no-calibrate", "--json")
    found = cli.json(*fit(letters, tmp_path / "out", *words))
    assert found["rows"] == []
    assert found["generators"] == 2
    assert found["iterations"] <= 4  # passes, as --iterations are, not batches
    (path,) = (tmp_path / "out").glob("model-*.safetensors")
    assert load_mixture(path).reference_ is None


def test_a_stop_keeps_what_was_learned_and_the_next_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, letters: Path, tmp_path: Path, cli: Program
) -> None:
    whole = cli.json(*fit(letters, tmp_path / "whole", "--json"))
    out, given = tmp_path / "out", SequenceMixture.fit_states

    def stop_at_third(model: SequenceMixture, *data: Any, **options: Any) -> Iterator[Any]:
        for state in given(model, *data, **options):
            if state.done == 3:
                monkeypatch.setattr(_signals._State, "asked", True)
            yield state

    monkeypatch.setattr(SequenceMixture, "fit_states", stop_at_third)
    with pytest.raises(_signals.Stopped):  # which the program says in its sentence
        monkeypatch.setattr(sys, "argv", ["taskmix", *map(str, fit(letters, out, "--json"))])
        run_command()
    assert [run.status for run in Study(out / "fits").summaries()] == ["stopped"]
    assert not (out / "summary.json").exists()
    monkeypatch.setattr(_signals._State, "asked", False)
    monkeypatch.setattr(SequenceMixture, "fit_states", given)
    assert cli(*fit(letters, out, "--json")) == 0
    assert figures(json.loads(cli.said().out)) == figures(whole)
    assert model_bytes(out) == model_bytes(tmp_path / "whole")
    assert {run.status for run in Study(out / "fits").summaries()} == {"finished"}


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """All but the paths."""
    return {key: summary[key] for key in summary.keys() - {"command", "page", "model"}}


def model_bytes(out: Path) -> bytes:
    (path,) = out.glob("model-*.safetensors")
    return path.read_bytes()


def test_a_second_command_on_one_folder_says_that_it_is_busy(
    letters: Path, tmp_path: Path, cli: Program
) -> None:
    out = tmp_path / "out"
    assert cli(*fit(letters, out, "--iterations", "3", "--no-baselines")) == 0
    with MixtureFolder(out).claimed():
        assert "Found it busy" in cli.refused(*fit(letters, out, "--iterations", "4"), code=1)
        # What is finished can be asked meanwhile.
        words = ("--iterations", "3", "--predict", "ae", "--task", "task 1")
        assert cli(*fit(letters, out, *words)) == 0


def test_files_of_others_survive_and_a_folder_of_others_is_refused_before_any_fit(
    monkeypatch: pytest.MonkeyPatch, letters: Path, tmp_path: Path, cli: Program
) -> None:
    out, words = tmp_path / "out", ("--no-baselines", "--iterations", "3")
    assert cli(*fit(letters, out, *words)) == 0
    strangers = {
        out / "notes.txt": b"mine",
        out / "model-mine.safetensors": b"mine",
        out / "model-0123456789abcdef.safetensors": b"mine",
        out / "fits" / "notes.txt": b"mine",
    }
    for path, content in strangers.items():
        path.write_bytes(content)
    assert cli(*fit(letters, out, *words, "--fresh")) == 0
    assert cli(*fit(letters, out, "--no-baselines", "--iterations", "4")) == 0
    assert {path: path.read_bytes() for path in strangers} == strangers
    assert len(list(out.glob("model-*.safetensors"))) == 4

    def refuse(*words: Any, **options: Any) -> None:
        raise AssertionError("fitted")

    monkeypatch.setattr(SequenceMixture, "fit_states", refuse)
    cli.said()
    (out / "report.html").write_bytes(b"my page")
    assert "Found another file" in cli.refused(*fit(letters, out, *words, "--fresh"))
    assert (out / "report.html").read_bytes() == b"my page"
    theirs = tmp_path / "theirs"
    (theirs / "fits").mkdir(parents=True)
    (theirs / "fits" / "m31.fits").write_bytes(b"a galaxy")
    assert "Found other files" in cli.refused(*fit(letters, theirs))
    assert [path.name for path in theirs.rglob("*")] == ["fits", "m31.fits"]
    (tmp_path / "file").write_bytes(b"mine")
    for path in (tmp_path / "file", tmp_path / "file" / "out"):
        assert "is a file" in cli.refused(*fit(letters, path))
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_other_commands_say_in_a_sentence_that_fits_are_no_runs_for_them(
    asked: Path, tmp_path: Path, cli: Program
) -> None:
    page = (asked / "report.html").read_bytes()
    assert "Found no run there" in cli.refused("report", asked)
    for study in (asked, asked / "fits"):
        assert "Traceback" not in cli.refused(
            "improve", study, "--write-plan", tmp_path / "plan.json"
        )
    assert (asked / "report.html").read_bytes() == page
    assert not (tmp_path / "plan.json").exists()


def test_the_number_of_generators_can_be_left_to_the_data(
    letters: Path, tmp_path: Path, cli: Program
) -> None:
    words = ("--generators", "auto", "--generator", "auto", "--no-own", "--no-baselines")
    words = (*words, "--iterations", "20", "--tries", "8", "--json")
    found = cli.json(*fit(letters, tmp_path / "out", *words))
    assert found["generators"] == 2
    assert 3 <= len(found["tried"]) <= 8
    assert [each["behind"] for each in found["tried"]].count(None) == 1
    assert not found["own"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--generator", "lstm"],
            "`--generator` should be one of auto, markov, hmm, gru, multinomial",
        ),
        (["--generator", "lds"], "for sequences of symbols"),
        (["--generators", "many"], "whole number above 0, or auto"),
        (["--predict", "ae", "--task", "nobody"], "Found 'nobody'"),
    ],
)
def test_wrong_words_are_one_sentence_and_exit_code_two(
    letters: Path, tmp_path: Path, words: list[str], sentence: str, cli: Program
) -> None:
    assert sentence in cli.refused(*fit(letters, tmp_path / "out", "--iterations", "3", *words))


def test_tasks_that_are_no_sequences_are_refused_in_a_sentence(
    tmp_path: Path, cli: Program
) -> None:
    path = tmp_path / "nothing"
    assert "nothing" in cli.refused("sequences", path, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_a_model_cannot_be_asked_is_a_sentence(
    asked: Path, tmp_path: Path, cli: Program
) -> None:
    new = tmp_path / "new.txt"
    new.write_text("ptk\n")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    for words, said in (
        (("score", asked, new, "--task", "nobody"), "nobody"),
        (("score", asked, tmp_path / "none.txt"), "Found nothing"),
        (("score", asked, new, "--task-prior", "odd"), "`--task-prior` should be"),
        (("score", asked, new, "--out", "x.xlsx"), ".parquet"),
        (("score", tmp_path, new), "Found 0 models"),
        (("score", tmp_path / "nowhere", new), "its .safetensors file. Found nothing there"),
        (("adapt", asked, empty), "should have sequences. Found none"),
        (("next", asked, "pt", "--task", "nobody"), "or name no task"),
        (("adapt", asked, new, "--out", "x.bin"), ".safetensors"),
    ):
        assert said in cli.refused("sequences", *words)


def test_a_table_of_scores_is_replaced_only_when_asked(
    asked: Path, tmp_path: Path, cli: Program
) -> None:
    (tmp_path / "new.txt").write_text("ptkbd\naeioua\nptk\n")
    words = ("sequences", "score", asked, tmp_path / "new.txt", "--task", "task 0")
    words = (*words, "--out", tmp_path / "scores.csv", "--most", "1")
    shown = cli.out(*words)
    assert shown.index("aeioua") < shown.index("ptk"), (
        "task 0 writes stops, and the second is vowels"
    )
    assert (tmp_path / "scores.csv").read_text().count("\n") == 4
    assert cli(*words) == 2
    assert cli(*words, "--overwrite") == 0


def test_symbols_of_a_prefix_that_were_never_seen_are_told(
    asked: Path, tmp_path: Path, cli: Program
) -> None:
    cli.said()
    assert cli("sequences", "next", asked, "pt") == 0
    assert "never seen" not in cli.said().err
    assert cli("sequences", "next", asked, "p ! t") == 0
    told = cli.said().err
    assert "has never seen ' ', '!'," in told
    assert "--words" in told
    assert cli("sequences", "next", asked, "p t", "--words") == 0
    assert "never seen" not in cli.said().err
