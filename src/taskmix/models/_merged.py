"""A model with its adapters added into its weights, which is one like any other."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from taskmix.models._base import load_whole
from taskmix.models._transformer import AdaptedEncoder


@torch.no_grad()
def merged_network(encoder: AdaptedEncoder) -> nn.Module:
    """A new network in float32, on the CPU: W + scale B A where a module W has an adapter.

    >>> merged_network(model.encoder).save_pretrained("merged")  # doctest: +SKIP
    """
    whole: Any = load_whole(encoder.path)
    network: nn.Module = whole.base_model if encoder.causal else whole
    for name in encoder.adapters.names:
        module, adapter = network.get_submodule(name), encoder.adapters.of(name)
        product = (adapter.lora_B @ adapter.lora_A).cpu() * encoder.adapters.options.scale
        weight = module.weight
        assert isinstance(weight, Tensor)
        weight += product if isinstance(module, nn.Linear) else product.T  # GPT-2's are transposed
    return cast("nn.Module", whole)
