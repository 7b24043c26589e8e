"""Commands say what they have to say, and nobody else speaks: not NumPy, not torch, not transformers."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import taskmix

from .conftest import save_encoder
from .running import Program, run_cli


def said(*words: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in a process of its own."""
    # Every warning is shown, also those that Python leaves out by default.
    command = [sys.executable, "-W", "always::RuntimeWarning", "-m", "taskmix", *map(str, words)]
    source = str(Path(taskmix.__file__).parents[1])
    quiet = ("TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS", "PYTHONWARNINGS")
    environment = {key: value for key, value in os.environ.items() if key not in quiet}
    environment |= {"PYTHONPATH": source, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=280)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny encoder from whose files the last layer is missing."""
    transformers = pytest.importorskip("transformers")
    from safetensors.torch import load_file, save_file

    path = tmp_path_factory.mktemp("encoder")
    save_encoder(path, pieces=8)
    weights = load_file(path / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "output.dense" not in name}
    assert len(kept) < len(weights)
    save_file(kept, path / "model.safetensors", metadata={"format": "pt"})
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "this", "is", "apple"]
    (path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(vocab_file=str(path / "vocab.txt")).save_pretrained(path)
    return path


def test_a_pretrained_encoder_is_loaded_in_workers_without_a_word_but_ours(
    folder: Path, encoder: Path, tmp_path: Path
) -> None:
    code, out, err = said(
        "train", folder, "--model", encoder, "--steps", "2", "--seeds", "2", "--workers", "2",
        "--max-length", "8", "--out", tmp_path / "study", "--keep", tmp_path / "model",
    )  # fmt: skip
    assert code == 0, err
    lines = err.splitlines()
    assert lines, "what is missing from its files is told"
    for line in lines:
        assert line.startswith(f"Note: `{encoder}` has no weights for "), err
        assert line.endswith("they begin at random.")
    assert len(set(lines)) == 1
    assert "Records:" in out


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("data", ["large", "small", "steep"])
def test_laws_of_awkward_numbers_come_without_warnings(
    data: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    unit = {"large": 1e37, "small": 1e-38, "steep": 1.0}[data]
    rows = ["n,T,y"]
    for place in range(29):
        n, size = place + 1.0, 1 + place * place % 5
        value = math.exp(3 * n) if data == "steep" else n * size
        rows.append(f"{n * unit},{size * unit},{value}")
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    words = ("--explain", "y", "--inputs", "n,T", "--formula", "exp(n)", "--group", "T")
    assert run_cli("laws", tmp_path / "rows.csv", *words) == 0
    shown = capfd.readouterr()  # also what LAPACK prints by itself
    assert shown.err == ""
    assert "Law:" in shown.out
    assert "DLASCL" not in shown.out


def test_a_size_that_cannot_be_squared_is_refused_in_a_sentence(
    tmp_path: Path, cli: Program
) -> None:
    rows = [f"{place + 1},{1e200 * place}" for place in range(30)]
    (tmp_path / "rows.csv").write_text("n,y\n" + "\n".join(rows) + "\n")
    words = ("--explain", "y", "--inputs", "n")
    assert cli("laws", tmp_path / "rows.csv", *words) == 2
    (line,) = cli.said().err.splitlines()
    assert "Found 1e+200 in row 2. Give them in another unit." in line


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_tables_of_huge_and_tiny_numbers_train_without_warnings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / "tasks" / name).mkdir(parents=True)
        for split in ("train", "dev"):
            lines = [f"{1e300 * (row % 5)},{1e-300 * row},{row % 2}" for row in range(12)]
            text = "x,y,label\n" + "\n".join(lines) + "\n"
            (tmp_path / "tasks" / name / f"{split}.csv").write_text(text)
    words = ("--steps", "30", "--batch-size", "4", "--out", tmp_path / "study")
    assert run_cli("train", tmp_path / "tasks", *words) == 0
    words = ("improve", tmp_path / "study", "--write-plan", tmp_path / "plan.json")
    assert run_cli(*words) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_values_that_no_model_can_give_are_refused_in_a_sentence(
    tmp_path: Path, cli: Program
) -> None:
    (tmp_path / "tasks" / "a").mkdir(parents=True)
    for split in ("train", "dev"):
        text = "x,label\n" + "\n".join(f"{row % 5},{0.5 + 1e200 * row}" for row in range(12)) + "\n"
        (tmp_path / "tasks" / "a" / f"{split}.csv").write_text(text)
    words = ("--steps", "3", "--out", tmp_path / "study")
    assert "Found 1e+200 in row 2 of the split `train`" in cli.refused(
        "train", tmp_path / "tasks", *words
    )


def test_a_warning_of_ours_is_a_note_of_one_line(
    folder: Path, tmp_path: Path, cli: Program
) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("no folder")  # where encodings cannot be kept
    words = ("--steps", "2", "--cache", blocked, "--out", tmp_path / "study", "--json")
    assert cli("train", folder, *words) == 0
    shown = cli.said()
    assert json.loads(shown.out)["runs"][0]["outcome"] == "finished"
    (line,) = shown.err.splitlines()
    assert line.startswith(f"Note: The encoding was not kept in {blocked}:")
