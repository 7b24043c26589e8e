"""Tiny pretrained models with random weights, and adapters over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from taskmix.models import HardSharing, Transformer
from taskmix.tasks import DenseInputs, EncodedSplit, EncodedTask, EncodedTasks

transformers = pytest.importorskip("transformers", reason="the extra `text` is not installed")

SMALL = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}


def base(folder: Path, kind: str, **more: Any) -> str:
    torch.manual_seed(0)
    if kind == "bert":
        network = transformers.BertModel(transformers.BertConfig(**SMALL | more))
    elif kind == "llama":
        config = transformers.LlamaConfig(**SMALL | {"num_key_value_heads": 2} | more)
        network = transformers.LlamaForCausalLM(config)
    else:
        config = transformers.GPT2Config(
            vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=32
        )
        network = transformers.GPT2LMHeadModel(config)
    path = folder / kind
    network.save_pretrained(path)
    return str(path)


def one_task(kind: Any = "classification", labels: tuple[str, ...] = ("no", "yes")) -> EncodedTasks:
    split = EncodedSplit(DenseInputs(torch.zeros(2, 1)), torch.tensor([0, 1]))
    task = EncodedTask(
        name="a", kind=kind, labels=labels, metric="accuracy", source="a", splits={"train": split}
    )
    return EncodedTasks((task,))


def stirred(module: torch.nn.Module) -> None:
    """Gives adapters something to say: their B begins at 0."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in module.named_parameters():
        if "lora" in name:
            with torch.no_grad():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)


def adapted(path: str, **options: Any) -> HardSharing:
    return Transformer(path=path, tune="adapters", **options).build(one_task()).eval()
