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
from taskmix.numerics import state_to_tree
from taskmix.records import Study, save_state
from taskmix.sequences import MixtureFolder, SequenceMixture, load_mixture

from .running import run_cli

WORDS = {"vowels": "aeiou", "stops": "ptkbd"}


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """Four tasks of short strings in one table, two of each kind."""
    generator = np.random.default_rng(0)
    path = tmp_path / "letters.csv"
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


def fit(monkeypatch: pytest.MonkeyPatch, letters: Path, out: Path, *words: str) -> int:
    given = ("--characters", "--generator", "markov", "--generators", "2", "--restarts", "1")
    given = (*given, "--out", out, *words)
    return run_cli(monkeypatch, "sequences", letters, *given)


def fit_as_program(monkeypatch: pytest.MonkeyPatch, letters: Path, out: Path, *words: str) -> None:
    given = ("--characters", "--generator", "markov", "--generators", "2", "--restarts", "1")
    given = (*given, "--out", str(out), *words)
    monkeypatch.setattr(sys, "argv", ["taskmix", "sequences", str(letters), *given])
    run_command()


def test_a_folder_becomes_a_model_a_page_and_figures(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
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


def test_asking_again_does_not_fit_again(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--json") == 0
    first = capsys.readouterr().out

    def refuse(*words: Any, **options: Any) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(SequenceMixture, "fit_states", refuse)
    assert fit(monkeypatch, letters, out, "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(first)
    words = ("--predict", "ae", "--task", "task 1", "--json")
    assert fit(monkeypatch, letters, out, *words) == 0
    ahead = json.loads(capsys.readouterr().out)
    shares = {row["symbol"]: row["probability"] for row in ahead["next"]}
    assert len(shares) == 8
    assert sum(shares.get(symbol, 0.0) for symbol in (*"aeiou", "(end)")) > 0.8
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert ahead["completion"][:2] == ["a", "e"]


def test_batches_are_learned_from_and_told_pass_by_pass(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    words = ("--batch-size", "8", "--iterations", "4", "--no-baselines", "--json")
    assert fit(monkeypatch, letters, tmp_path / "out", *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == []
    assert found["generators"] == 2
    assert found["iterations"] <= 4  # passes, as --iterations are, not batches


def test_one_task_alone_is_compared_by_its_sequences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "only.txt"
    path.write_text("ab ba\n" * 20 + "ba ab ab\n" * 20)
    words = (
        "--generator",
        "markov",
        "--generators",
        "1",
        "--no-calibrate",
        "--out",
        tmp_path / "out",
    )
    assert run_cli(monkeypatch, "sequences", path, *words) == 0
    shown = capsys.readouterr().out
    assert "1 task, 1 generator: " in shown
    assert "nan" not in shown
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    gain = summary["rows"][-1]["gain"]  # over plain LDA
    assert gain["n"] > 1
    assert gain["low"] <= gain["value"] <= gain["high"]


def test_the_table_is_for_people(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    words = ("--generator", "hmm", "--states", "2", "--iterations", "5")
    assert fit(monkeypatch, letters, out, *words) == 0
    shown = capsys.readouterr().out
    assert "one model per task" in shown
    assert "4 tasks, 2 generators" in shown
    assert "Read all 4 tasks: sequences of symbols; log_loss; dev is a tenth of train\n" in shown
    assert fit(monkeypatch, letters, out, *words, "--predict", "pt", "--task", "task 0") == 0
    assert "Most likely as a whole: pt" in capsys.readouterr().out


def test_a_stop_keeps_what_was_learned_and_the_next_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    assert fit(monkeypatch, letters, tmp_path / "whole", "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    out, given = tmp_path / "out", SequenceMixture.fit_states

    def stop_at_third(model: SequenceMixture, *data: Any, **options: Any) -> Iterator[Any]:
        for state in given(model, *data, **options):
            if state.done == 3:
                monkeypatch.setattr(_signals._State, "asked", True)
            yield state

    monkeypatch.setattr(SequenceMixture, "fit_states", stop_at_third)
    with pytest.raises(_signals.Stopped):  # which the program says in its sentence
        fit_as_program(monkeypatch, letters, out, "--json")
    assert [run.status for run in Study(out / "fits").summaries()] == ["stopped"]
    assert not (out / "summary.json").exists()
    monkeypatch.setattr(_signals._State, "asked", False)
    monkeypatch.setattr(SequenceMixture, "fit_states", given)
    assert fit(monkeypatch, letters, out, "--json") == 0
    assert figures(json.loads(capsys.readouterr().out)) == figures(whole)
    assert model_bytes(out) == model_bytes(tmp_path / "whole")
    assert {run.status for run in Study(out / "fits").summaries()} == {"finished"}


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """All but the paths."""
    return {key: summary[key] for key in summary.keys() - {"command", "page", "model"}}


def model_bytes(out: Path) -> bytes:
    (path,) = out.glob("model-*.safetensors")
    return path.read_bytes()


def test_fresh_starts_over_and_ends_the_same(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out, words = tmp_path / "out", ("--no-baselines", "--json")
    assert fit(monkeypatch, letters, out, *words) == 0
    first, before = json.loads(capsys.readouterr().out), model_bytes(out)
    given, seen = SequenceMixture.fit_states, []

    def watch(model: SequenceMixture, *data: Any, **options: Any) -> Iterator[Any]:
        for state in given(model, *data, **options):
            seen.append(state.done)
            yield state

    monkeypatch.setattr(SequenceMixture, "fit_states", watch)
    assert fit(monkeypatch, letters, out, *words) == 0
    assert seen == []
    assert fit(monkeypatch, letters, out, *words, "--fresh") == 0
    assert seen[:2] == [1, 2]
    capsys.readouterr()
    assert fit(monkeypatch, letters, out, *words) == 0
    assert figures(json.loads(capsys.readouterr().out)) == figures(first)
    assert model_bytes(out) == before


def test_a_second_command_on_one_folder_says_that_it_is_busy(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--iterations", "3", "--no-baselines") == 0
    with MixtureFolder(out).claimed():
        assert fit(monkeypatch, letters, out, "--iterations", "4") == 1
        assert "Found it busy" in capsys.readouterr().err
        # What is finished can be asked meanwhile.
        words = ("--iterations", "3", "--predict", "ae", "--task", "task 1")
        assert fit(monkeypatch, letters, out, *words) == 0


def test_files_of_others_survive_and_a_folder_of_others_is_refused_before_any_fit(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out, words = tmp_path / "out", ("--no-baselines", "--iterations", "3")
    assert fit(monkeypatch, letters, out, *words) == 0
    strangers = {
        out / "notes.txt": b"mine",
        out / "model-mine.safetensors": b"mine",
        out / "model-0123456789abcdef.safetensors": b"mine",
        out / "fits" / "notes.txt": b"mine",
    }
    for path, content in strangers.items():
        path.write_bytes(content)
    assert fit(monkeypatch, letters, out, *words, "--fresh") == 0
    assert fit(monkeypatch, letters, out, "--no-baselines", "--iterations", "4") == 0
    assert {path: path.read_bytes() for path in strangers} == strangers
    assert len(list(out.glob("model-*.safetensors"))) == 4

    def refuse(*words: Any, **options: Any) -> None:
        raise AssertionError("fitted")

    monkeypatch.setattr(SequenceMixture, "fit_states", refuse)
    capsys.readouterr()
    (out / "report.html").write_bytes(b"my page")
    assert fit(monkeypatch, letters, out, *words, "--fresh") == 2
    assert "Found another file" in capsys.readouterr().err
    assert (out / "report.html").read_bytes() == b"my page"
    theirs = tmp_path / "theirs"
    (theirs / "fits").mkdir(parents=True)
    (theirs / "fits" / "m31.fits").write_bytes(b"a galaxy")
    assert fit(monkeypatch, letters, theirs) == 2
    assert "Found other files" in capsys.readouterr().err
    assert [path.name for path in theirs.rglob("*")] == ["fits", "m31.fits"]
    (tmp_path / "file").write_bytes(b"mine")
    for path in (tmp_path / "file", tmp_path / "file" / "out"):
        assert fit(monkeypatch, letters, path) == 2
        assert "is a file" in capsys.readouterr().err
    assert (tmp_path / "file").read_bytes() == b"mine"


def test_what_an_old_version_left_is_left_alone_and_does_not_confuse(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    words = ("--no-baselines", "--iterations", "3", "--json")
    assert fit(monkeypatch, letters, tmp_path / "clean", *words) == 0
    expected = json.loads(capsys.readouterr().out)
    out = tmp_path / "out"
    out.mkdir()
    old = {"version": 1, "name": expected["name"], "iteration": 2}
    parameters = load_mixture(next((tmp_path / "clean").glob("model-*"))).parameters_
    tree = {"parameters": state_to_tree(parameters, named=True), "alpha": np.ones(2)}
    save_state(out / "checkpoint.safetensors", old | tree)
    before = (out / "checkpoint.safetensors").read_bytes()
    assert fit(monkeypatch, letters, out, *words) == 0
    assert figures(json.loads(capsys.readouterr().out)) == figures(expected)
    assert (out / "checkpoint.safetensors").read_bytes() == before


def test_other_commands_say_in_a_sentence_that_fits_are_no_runs_for_them(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--no-baselines", "--iterations", "3") == 0
    page = (out / "report.html").read_bytes()
    capsys.readouterr()
    assert run_cli(monkeypatch, "report", out) == 2
    assert "Found no run there" in capsys.readouterr().err
    for study in (out, out / "fits"):
        assert run_cli(monkeypatch, "improve", study, "--write-plan", tmp_path / "plan.json") == 2
        assert "Traceback" not in capsys.readouterr().err
    assert (out / "report.html").read_bytes() == page
    assert not (tmp_path / "plan.json").exists()


def test_vectors_are_read_from_a_long_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    generator = np.random.default_rng(0)
    path = tmp_path / "vectors.csv"
    with path.open("w", newline="") as lines:
        rows = csv.writer(lines)
        rows.writerow(["task", "split", "sequence", "t", "x", "y"])
        for number in range(3):
            for place in range(8):
                for time in range(4):
                    values = generator.normal(number, 1.0, 2).round(3)
                    split = "train" if place < 5 else "test"
                    rows.writerow([f"task {number}", split, place, time, *values])
    words = ("sequences", path, "--generators", "2", "--restarts", "1", "--out", tmp_path / "out")
    assert run_cli(monkeypatch, *words, "--generator", "lds", "--states", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in found["rows"]] == [
        "shared generators",
        "one model per task",
        "one model per task, backed off",
        "one pooled model",
        "pooled mixture",
    ]
    assert found["rows"][0]["error"] > 0
    for kind in ("gaussian", "hmm", "gru"):
        given = (*words, "--generator", kind, "--iterations", "3", "--no-baselines", "--json")
        assert run_cli(monkeypatch, *given) == 0
    assert run_cli(monkeypatch, *words, "--predict", "1") == 2
    assert "sequences of symbols" in capsys.readouterr().err


def test_the_number_of_generators_can_be_left_to_the_data(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    words = ("--generators", "auto", "--generator", "auto", "--no-own", "--no-baselines")
    words = (*words, "--iterations", "20", "--tries", "8", "--json")
    assert fit(monkeypatch, letters, tmp_path / "out", *words) == 0
    found = json.loads(capsys.readouterr().out)
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
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
    words: list[str],
    sentence: str,
) -> None:
    assert fit(monkeypatch, letters, tmp_path / "out", "--iterations", "3", *words) == 2
    assert sentence in capsys.readouterr().err


def test_tasks_that_are_no_sequences_are_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "nothing"
    assert run_cli(monkeypatch, "sequences", path, "--out", tmp_path / "out") == 2
    assert "nothing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
