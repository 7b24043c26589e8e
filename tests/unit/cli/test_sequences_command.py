from __future__ import annotations

import csv
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix.cli import _sequences
from taskmix.sequences import MixtureState, load_mixture

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
    given = ("--characters", "--generators", "2", "--restarts", "1", "--out", out, *words)
    return run_cli(monkeypatch, "sequences", letters, *given)


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
    assert len(found["rows"]) == 5
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

    monkeypatch.setattr(_sequences, "_fit", refuse)
    assert fit(monkeypatch, letters, out, "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(first)
    words = ("--predict", "ae", "--task", "task 1", "--json")
    assert fit(monkeypatch, letters, out, *words) == 0
    ahead = json.loads(capsys.readouterr().out)
    assert sum(row["probability"] for row in ahead["next"]) > 0.8
    assert ahead["next"][0]["symbol"] in "aeiou" or ahead["next"][0]["symbol"] == "(end)"
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
    assert "Most likely on the whole: pt" in capsys.readouterr().out


def test_a_stop_keeps_what_was_learned_and_the_next_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    from taskmix.sequences import SequenceMixture

    whole = SequenceMixture.set_params

    def stop_at_third(model: SequenceMixture, **options: Any) -> Any:
        listen = options.get("on_state")
        if listen is not None:

            def stopping(state: MixtureState) -> None:
                if state.iteration == 3:
                    signal.raise_signal(signal.SIGINT)
                listen(state)

            options["on_state"] = stopping
        return whole(model, **options)

    monkeypatch.setattr(SequenceMixture, "set_params", stop_at_third)
    assert fit(monkeypatch, letters, out, "--json") == 1
    assert "Stopped. Run the same command again" in capsys.readouterr().err
    assert (out / "checkpoint.safetensors").exists()
    assert not (out / "summary.json").exists()
    monkeypatch.setattr(SequenceMixture, "set_params", whole)
    assert fit(monkeypatch, letters, out, "--json") == 0
    assert not (out / "checkpoint.safetensors").exists()
    assert (out / "summary.json").exists()


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
    monkeypatch.setattr(_sequences, "_COUNTS", (1, 2))
    words = ("--generators", "auto", "--no-baselines", "--iterations", "20", "--json")
    assert fit(monkeypatch, letters, tmp_path / "out", *words) == 0
    assert json.loads(capsys.readouterr().out)["generators"] == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--generator", "lstm"], "`--generator` should be one of markov, hmm, gru, multinomial"),
        (["--generator", "lds"], "for sequences of symbols"),
        (["--generators", "many"], "whole number above 0, or auto"),
        (["--predict", "ae", "--task", "nobody"], "Found 'nobody'"),
        (["--predict", "xyz", "--task", "task 0"], "Found 'x'"),
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
