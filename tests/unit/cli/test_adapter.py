"""Adapters of PEFT on the command line: gone on from, kept, merged, and asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from taskmix.models import Transformer, save_adapters
from taskmix.records import Study

from .conftest import save_encoder
from .running import Program

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
    return Path(save_letters(save_encoder(tmp_path / "encoder")))


@pytest.fixture
def adapter(tmp_path: Path, encoder: Path, texts: Path) -> Path:
    from taskmix.tasks import load_tasks

    architecture = Transformer(path=str(encoder), tune="adapters", max_length=8)
    model = architecture.build(architecture.encoding.encode(load_tasks(texts)))
    return save_adapters(tmp_path / "adapter", model.encoder)  # type: ignore[arg-type]


def train(folder: Path, *words: str | Path) -> tuple[str | Path, ...]:
    fixed = ("--steps", "3", "--device", "cpu", "--max-length", "8", "--out", folder / "study")
    return ("train", folder / "tasks", *fixed, *words)


@pytest.mark.parametrize("named", [False, True], ids=["with its model", "alone"])
def test_training_goes_on_from_adapters_and_the_model_is_kept_merged_and_asked(
    tmp_path: Path, encoder: Path, adapter: Path, named: bool, cli: Program
) -> None:
    which = ("--model", adapter) if named else ("--model", encoder, "--adapter", adapter)
    assert "Tuning: adapters, " in cli.out(
        *train(tmp_path, *which, "--keep", tmp_path / "model", "--merged")
    )
    (run,) = Study(tmp_path / "study").runs()
    summary = run.summary()
    assert summary is not None
    described = summary.specification["architecture"]
    assert described["path"] == str(encoder)
    assert len(described["adapters"]["start"]["content"]) == 64
    (tmp_path / "rows.jsonl").write_text('{"text": "an"}\n')
    answer = cli.json("predict", tmp_path / "model", tmp_path / "rows.jsonl")
    (merged,) = (tmp_path / "model").glob("merged0-*")
    transformers.AutoModel.from_pretrained(merged)
    encoder.rename(tmp_path / "moved")
    ask = ("predict", tmp_path / "model", tmp_path / "rows.jsonl")
    assert "taskmix predict --base PATH" in cli.refused(*ask)
    assert cli(*ask, "--base", tmp_path / "moved") == 0
    assert json.loads(cli.said().out) == answer


def test_adapters_whose_model_is_not_here_ask_for_it(
    tmp_path: Path, encoder: Path, adapter: Path, cli: Program
) -> None:
    encoder.rename(tmp_path / "moved")
    error = cli.refused(*train(tmp_path, "--model", adapter))
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
    tmp_path: Path,
    encoder: Path,
    texts: Path,
    words: tuple[str, ...],
    sentence: str,
    cli: Program,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in cli.refused(*train(tmp_path, "--model", encoder, *words))
    assert not (tmp_path / "study").exists()
    assert not (tmp_path / "model").exists()
