from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from taskmix.tasks import Pooling, find_pooling, pool

pytest.importorskip("transformers", reason="the extra `text` is not installed")


def model(folder: Path, config: Any, **pooling: Any) -> str:
    """A folder that says of itself what a model's folder says; `pooling` is its pooling file."""
    (folder / "config.json").write_text(json.dumps(config))
    if pooling:
        modules = [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    return str(folder)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "first"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),
        ({"pooling_mode": "cls"}, "first"),
        ({"pooling_mode": ["lasttoken"]}, "last"),
    ],
)
def test_a_model_is_pooled_as_its_pooling_file_says(
    pooling: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert find_pooling(model(tmp_path, {"model_type": "llama"}, **pooling)) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "bert", "architectures": ["BertModel"]}, "mean"),
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "mean"),
        ({"model_type": "bert", "is_decoder": True}, "last"),
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "last"),
        ({"model_type": "llama", "architectures": ["LlamaModel"]}, "last"),
        ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, "last"),
        ({}, "mean"),
        (["no", "configuration"], "mean"),
    ],
)
def test_without_a_pooling_file_a_causal_model_is_read_at_its_last_place(
    config: Any, expected: str, tmp_path: Path
) -> None:
    assert find_pooling(model(tmp_path, config)) == expected


@pytest.mark.parametrize("padded_left", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "first", "last", "max"])
def test_padding_has_no_part_in_a_texts_vector(pooling: Pooling, padded_left: bool) -> None:
    torch.manual_seed(0)
    text = -torch.rand(2, 3)  # all below 0, where a padding of zeros would be the largest
    padding = torch.full((2, 3), 7.0)
    parts = [(padding, 0), (text, 1)] if padded_left else [(text, 1), (padding, 0)]
    states = torch.cat([part for part, _ in parts]).unsqueeze(0)
    mask = torch.tensor([[flag for _, flag in parts for _ in range(2)]])
    expected = {
        "mean": text.mean(dim=0),
        "first": text[0],
        "last": text[1],
        "max": text.amax(dim=0),
    }
    torch.testing.assert_close(pool(states, mask, pooling)[0], expected[pooling])
