"""Adapters of PEFT on the command line: gone on from, kept, merged, and asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskmix.models import Transformer, save_adapters
from taskmix.records import Study

from .running import run_cli

transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    for split in ("train", "dev", "test"):
        rows = [
            {"text": word, "label": str(word[0] in "aeiou")} for word in ("an", "be", "in", "so")
        ]
        path = tmp_path / "tasks" / "vowels" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows * 4))
    return tmp_path / "tasks"


@pytest.fixture
def encoder(tmp_path: Path, save_letters: Any) -> Path:
    import torch

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=80,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    transformers.BertModel(config).save_pretrained(tmp_path / "encoder")
    return Path(save_letters(tmp_path / "encoder"))


@pytest.fixture
def adapter(tmp_path: Path, encoder: Path, texts: Path) -> Path:
    from taskmix.tasks import load_tasks

    architecture = Transformer(path=str(encoder), tune="adapters", max_length=8)
    model = architecture.build(architecture.encoding.encode(load_tasks(texts)))
    return save_adapters(tmp_path / "adapter", model.encoder)  # type: ignore[arg-type]


def train(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str | Path) -> int:
    fixed = ("--steps", "3", "--device", "cpu", "--max-length", "8", "--out", folder / "study")
    return run_cli(monkeypatch, "train", folder / "tasks", *fixed, *words)


@pytest.mark.parametrize("named", [False, True], ids=["with its model", "alone"])
def test_training_goes_on_from_adapters_and_the_model_is_kept_merged_and_asked(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    encoder: Path,
    adapter: Path,
    named: bool,
) -> None:
    which = ("--model", adapter) if named else ("--model", encoder, "--adapter", adapter)
    assert train(monkeypatch, tmp_path, *which, "--keep", tmp_path / "model", "--merged") == 0
    assert "Tuning: adapters, " in capsys.readouterr().out
    (run,) = Study(tmp_path / "study").runs()
    summary = run.summary()
    assert summary is not None
    described = summary.specification["architecture"]
    assert described["path"] == str(encoder)
    assert len(described["adapters"]["start"]["content"]) == 64
    (tmp_path / "rows.jsonl").write_text('{"text": "an"}\n')
    assert run_cli(monkeypatch, "predict", tmp_path / "model", tmp_path / "rows.jsonl") == 0
    answer = json.loads(capsys.readouterr().out)
    (merged,) = (tmp_path / "model").glob("merged0-*")
    transformers.AutoModel.from_pretrained(merged)
    encoder.rename(tmp_path / "moved")
    ask = ("predict", tmp_path / "model", tmp_path / "rows.jsonl")
    assert run_cli(monkeypatch, *ask) == 2
    assert "taskmix predict --base PATH" in capsys.readouterr().err
    assert run_cli(monkeypatch, *ask, "--base", tmp_path / "moved") == 0
    assert json.loads(capsys.readouterr().out) == answer


def test_adapters_whose_model_is_not_here_ask_for_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    encoder: Path,
    adapter: Path,
) -> None:
    encoder.rename(tmp_path / "moved")
    assert train(monkeypatch, tmp_path, "--model", adapter) == 2
    error = capsys.readouterr().err
    assert "should name the model that they were trained on" in error
    assert "--model" in error
    assert "--adapter" in error


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--merged",), "should go with --keep"),
        (("--merged", "--keep", "model", "--tune", "heads"), "made of one with adapters"),
        (("--adapter", "nowhere"), "should be a folder with adapters of PEFT"),
        (("--adapter", "nowhere", "--tune", "all"), "should go with adapters"),
    ],
)
def test_what_does_not_go_together_is_told_before_training(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    encoder: Path,
    texts: Path,
    words: tuple[str, ...],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train(monkeypatch, tmp_path, "--model", encoder, *words) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "study").exists()
    assert not (tmp_path / "model").exists()


def test_adapters_without_a_pretrained_model_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, texts: Path
) -> None:
    assert train(monkeypatch, tmp_path, "--adapter", "somewhere") == 2
    assert "should go with a pretrained model" in capsys.readouterr().err
