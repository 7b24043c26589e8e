"""Commands say what they have to say, and nobody else speaks: not NumPy, not torch, not transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import taskmix
from taskmix.cli import main


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
    config = transformers.BertConfig(
        vocab_size=8,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=32,
    )
    transformers.BertModel(config).save_pretrained(path)
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


@pytest.mark.parametrize(
    ("unit", "grows"), [(1e37, "n"), (1e-38, "n"), (1.0, "exp(3*n)")], ids=["large", "small", "exp"]
)
def test_laws_of_awkward_numbers_come_without_warnings(
    unit: float, grows: str, tmp_path: Path
) -> None:
    from math import exp

    rows = ["n,T,y"]
    for place in range(29):
        n, size = place + 1.0, 1 + place * place % 5
        rows.append(f"{n * unit},{size * unit},{n * size if grows == 'n' else exp(3 * n)}")
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    words = ("--target", "y", "--inputs", "n,T", "--compare", "exp(n)", "--group", "T")
    code, out, err = said("laws", tmp_path / "rows.csv", *words)
    assert (code, err) == (0, "")
    assert "Law:" in out


def test_a_size_that_cannot_be_squared_is_refused_in_a_sentence(tmp_path: Path) -> None:
    rows = [f"{place + 1},{1e200 * place}" for place in range(30)]
    (tmp_path / "rows.csv").write_text("n,y\n" + "\n".join(rows) + "\n")
    code, _, err = said("laws", tmp_path / "rows.csv", "--target", "y", "--inputs", "n")
    assert code == 2
    assert "Found 1e+200 in row 2. Give them in another unit." in err
    assert len(err.splitlines()) == 1


def test_tables_of_huge_and_tiny_numbers_train_without_warnings(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "tasks" / name).mkdir(parents=True)
        for split in ("train", "dev"):
            lines = [f"{1e300 * (row % 5)},{1e-300 * row},{row % 2}" for row in range(12)]
            text = "x,y,label\n" + "\n".join(lines) + "\n"
            (tmp_path / "tasks" / name / f"{split}.csv").write_text(text)
    words = ("--steps", "30", "--batch-size", "4", "--out", tmp_path / "study")
    code, _, err = said("train", tmp_path / "tasks", *words)
    assert (code, err) == (0, "")
    code, _, err = said("improve", tmp_path / "study", "--out", tmp_path / "plan.json")
    assert (code, err) == (0, "")


def test_a_warning_of_ours_is_a_note_of_one_line(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocked = tmp_path / "cache"
    blocked.write_text("no folder")  # where encodings cannot be kept
    words = ["train", folder, "--steps", "2", "--cache", blocked, "--out", tmp_path / "study"]
    monkeypatch.setattr(sys, "argv", ["taskmix", *map(str, words), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert ended.value.code in (0, None)
    assert json.loads(shown.out)["runs"][0]["outcome"] == "finished"
    (line,) = shown.err.splitlines()
    assert line.startswith(f"Note: The encoding was not kept in {blocked}:")
