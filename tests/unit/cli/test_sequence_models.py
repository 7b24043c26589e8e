"""What a mixture that exists is asked on the command line, and sequences that are streamed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taskmix.sequences import load_mixture

from .running import run_cli

WORDS = {"vowels": "aeiou", "stops": "ptkbd"}
MARKOV = ("--generator", "markov", "--generators", "2")


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
                text = "".join(generator.choice(alphabet, int(generator.integers(2, 7))))
                rows.writerow([f"task {number}", text, "train" if place < 8 else "test"])
    return path


def fit(monkeypatch: pytest.MonkeyPatch, letters: Path, out: Path, *words: str) -> int:
    given = ("--characters", *MARKOV, "--restarts", "1", "--out", out, *words)
    return run_cli(monkeypatch, "sequences", letters, *given)


def scored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str | Path
) -> Any:
    """What a command about a model prints as JSON."""
    capsys.readouterr()
    assert run_cli(monkeypatch, "sequences", *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_model_is_asked_whose_sequences_are(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--no-baselines") == 0
    new = tmp_path / "new.txt"
    new.write_text("ptkbd\naeioua\nptk\n")
    found = scored(monkeypatch, capsys, "score", out, new, "--task", "task 0")
    first, planted, last = (row["log_ratio"] for row in found["rows"])
    assert planted < 0 < min(first, last)  # the second is vowels, and task 0 writes stops
    assert found["rows"][1]["p_ratio"] < 0.1 < found["rows"][0]["p_ratio"]
    assert found["rows"][1]["likeliest"] in ("task 1", "task 3")
    alone = scored(monkeypatch, capsys, "score", out, new)  # no task is named
    assert alone["rows"][1]["task"] in ("task 1", "task 3")
    assert alone["rows"][1]["p_ratio"] is None
    table = tmp_path / "scores.csv"
    words = ("score", out, new, "--task", "task 0", "--out", table, "--most", "1")
    assert run_cli(monkeypatch, "sequences", *words) == 0
    shown = capsys.readouterr().out
    assert shown.index("aeioua") < shown.index("ptk")
    assert table.read_text().count("\n") == 4
    assert run_cli(monkeypatch, "sequences", *words) == 2  # the file is there
    assert run_cli(monkeypatch, "sequences", *words, "--overwrite") == 0


def test_a_model_goes_on_draws_and_learns_new_tasks(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--no-baselines", "--no-calibrate") == 0
    (path,) = out.glob("model-*.safetensors")
    assert load_mixture(path).reference_ is None
    ahead = scored(monkeypatch, capsys, "next", out, "ae", "--task", "task 1")
    assert ahead["next"][0]["symbol"] in {*WORDS["vowels"], "(end)"}
    drawn = scored(monkeypatch, capsys, "sample", path, "--task", "task 0", "--number", "20")
    letters_drawn = "".join(drawn["sequences"])
    assert sum(each in WORDS["stops"] for each in letters_drawn) > 0.8 * len(letters_drawn)
    again = scored(monkeypatch, capsys, "sample", path, "--task", "task 0", "--number", "20")
    assert again == drawn
    few, more = tmp_path / "few.txt", tmp_path / "more.safetensors"
    few.write_text("ptk\nkdb\ntttp\n")
    made = scored(monkeypatch, capsys, "adapt", out, few, "--task", "new", "--out", more)
    (row,) = made["tasks"]
    assert row["task"] == "new"
    assert all(a <= b <= c for a, b, c in zip(row["low"], row["shares"], row["high"], strict=True))
    assert row["log_likelihood_low"] < row["log_likelihood"] < row["log_likelihood_high"]
    new = load_mixture(more)
    assert new.tasks_[-1] == "new"
    assert new.log_ratio(["ptkd"], ["new"])[0] > new.log_ratio(["aeio"], ["new"])[0]


def test_what_a_model_cannot_be_asked_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--no-baselines", "--no-calibrate") == 0
    new = tmp_path / "new.txt"
    new.write_text("ptk\n")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    for words, said in (
        (("score", out, new, "--task", "nobody"), "nobody"),
        (("score", out, tmp_path / "none.txt"), "Found nothing"),
        (("score", out, new, "--task-prior", "odd"), "`--task-prior` should be"),
        (("score", out, new, "--out", "x.xlsx"), ".parquet"),
        (("score", tmp_path, new), "Found 0 models"),
        (("score", tmp_path / "nowhere", new), "its .safetensors file. Found nothing there"),
        (("adapt", out, empty), "should have sequences. Found none"),
        (("next", out, "pt", "--task", "nobody"), "or name no task"),
        (("adapt", out, new, "--out", "x.bin"), ".safetensors"),
    ):
        assert run_cli(monkeypatch, "sequences", *words) == 2
        assert said in capsys.readouterr().err


def test_symbols_of_a_prefix_that_were_never_seen_are_told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    letters: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    assert fit(monkeypatch, letters, out, "--no-baselines", "--no-calibrate") == 0
    capsys.readouterr()
    assert run_cli(monkeypatch, "sequences", "next", out, "pt") == 0
    assert "never seen" not in capsys.readouterr().err
    assert run_cli(monkeypatch, "sequences", "next", out, "p ! t") == 0
    told = capsys.readouterr().err
    assert "has never seen ' ', '!'," in told
    assert "--words" in told
    assert run_cli(monkeypatch, "sequences", "next", out, "p t", "--words") == 0
    assert "never seen" not in capsys.readouterr().err


def test_a_stream_with_one_task_and_empty_files_is_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "empty.txt").write_text("")
    given = ("--stream", "--generator", "markov", "--generators", "1", "--iterations", "3")
    assert run_cli(monkeypatch, "sequences", folder, *given, "--out", tmp_path / "none") == 2
    assert "should have sequences. Found none" in capsys.readouterr().err
    (folder / "one.txt").write_text("a b\nb\n" * 30)
    (folder / "rows.csv").write_text("task,sequence\none,b a\n")
    assert run_cli(monkeypatch, "sequences", folder, *given, "--out", tmp_path / "out") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "sequences of 1 task, " in shown
    assert "symbols, 2 different ones; " in shown
    assert "1 task, 1 generator: Markov(). 3 iterations." in shown
    words = (*given, "--task-column", "user", "--out", tmp_path / "other")
    assert run_cli(monkeypatch, "sequences", folder, *words) == 2
    assert "with `--task-column`" in capsys.readouterr().err


def test_files_are_streamed_and_the_error_names_the_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("user,words\n" + "x,a b a\ny,c d\n" * 60)
    out = tmp_path / "out"
    given = ("--stream", *MARKOV, "--batch-size", "40", "--iterations", "3")
    assert run_cli(monkeypatch, "sequences", path, *given, "--out", out) == 2
    assert "--sequence-column" in capsys.readouterr().err
    columns = ("--sequence-column", "words", "--task-column", "user")
    assert run_cli(monkeypatch, "sequences", path, *given, *columns, "--out", out, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["theta"]) == {"x", "y"}
    assert (out / "report.html").exists()
    assert run_cli(monkeypatch, "sequences", path, "--out", tmp_path / "other") == 2
    assert "--sequence-column" in capsys.readouterr().err
