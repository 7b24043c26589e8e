from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from .running import Program

NAMES = ("a", "b", "c", "d", "e")  # of the tasks in `tables`


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two text tasks that a word decides."""
    return write_texts(tmp_path / "tasks")


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, for what the tests of a file share."""
    return write_texts(tmp_path_factory.mktemp("shared") / "tasks")


def write_texts(root: Path) -> Path:
    for name, word in (("fruit", "apple"), ("tool", "hammer")):
        (root / name).mkdir(parents=True)
        for split, rows in (("train", 40), ("dev", 12), ("test", 12)):
            lines = [
                json.dumps(
                    {
                        "text": f"this is {word if row % 2 else 'nothing'} {row % 5}",
                        "label": row % 2,
                    }
                )
                for row in range(rows)
            ]
            (root / name / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return root


def save_encoder(folder: Path, pieces: int = 80) -> Path:
    """A pretrained encoder of one small layer that has learned nothing."""
    transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=pieces,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Five tasks of two columns, of which the last has labels that mean nothing."""
    root = tmp_path / "tables"
    for place, name in enumerate(NAMES):
        (root / name).mkdir(parents=True)
        for split, rows in (("train", 24), ("dev", 12), ("test", 6)):
            lines = ["x,y,label"]
            for row in range(rows):
                x, y = (row * 7 + place) % 11 - 5, (row * 5) % 7 - 3
                label = (row * row) % 3 == 0 if name == "e" else x + 0.1 * place * y > 0
                lines.append(f"{x},{y},{int(label)}")
            (root / name / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return root
