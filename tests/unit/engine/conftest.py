"""Makes `fleet_toys` importable, whichever file the tests are started from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from taskmix.engine import cluster

sys.path.insert(0, str(Path(__file__).parent))
# Ray's own is 15: its workers would wait behind every other process of a busy machine.
os.environ.setdefault("RAY_worker_niceness", "0")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Sums have one order, and processes that are started do not fight for cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="package")
def ray_cluster() -> Iterator[None]:
    """A local Ray cluster, which takes seconds to start, for all tests of this folder."""
    pytest.importorskip("ray", reason="the extra `cluster` is not installed")
    with cluster(workers=2):
        yield


@pytest.fixture
def save_encoder(save_letters: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    """Saves a tiny BERT with random weights, and the tokenizer of letters beside it."""
    transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")

    def save(name: str = "bert", *, seed: int = 0, hidden: int = 16) -> str:
        torch.manual_seed(seed)
        config = transformers.BertConfig(
            vocab_size=80,
            hidden_size=hidden,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=24,
            max_position_embeddings=48,
            initializer_range=0.2,
        )
        transformers.BertModel(config).save_pretrained(tmp_path / name)
        return save_letters(tmp_path / name)

    return save


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKMIX_CACHE", str(tmp_path / "cache"))
