"""What tests of experiments share: a tiny encoder, and commands run in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from papers.__main__ import main

WORDS = ("good", "bad", "one", "two", "three", "the")


@pytest.fixture
def real_data() -> Path:
    """The real data, beside the repository or where TASKMIX_DATA says."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    data = Path(os.environ.get("TASKMIX_DATA", beside))
    if not data.is_dir():
        pytest.skip(f"the real data are not in {data}; TASKMIX_DATA says where they are")
    return data


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A BERT of one layer with random weights, which knows six words."""
    transformers = pytest.importorskip("transformers")
    path = tmp_path / "encoder"
    path.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    configuration = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    torch.manual_seed(0)
    transformers.BertModel(configuration).save_pretrained(path)
    transformers.BertTokenizerFast(str(path / "vocab.txt")).save_pretrained(path)
    return path


@pytest.fixture
def command() -> Callable[..., int]:
    """Runs an experiment as `python -m papers` does, and gives its exit code."""

    def run(*words: str | Path) -> int:
        try:
            return main([str(word) for word in words])
        except SystemExit as ended:  # words that cannot be read
            return int(ended.code or 0)

    return run
