"""A tree of tensors, numbers and names as one tensor of bytes, which every kind of checkpoint can hold.

A model's `state_dict` may go into a file of safetensors, which has tensors alone, or be read with
`torch.load(weights_only=True)`. The bytes are a safetensors file of their own: the tree's tensors, and
the rest as JSON beside them. Reading runs no code.
"""

from __future__ import annotations

import json
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from taskmix.errors import RecordError

_TENSOR = "tensor"  # the key of a mapping that stands for a tensor; part of the form on disk
_TREE = "tree"


def tree_to_bytes(tree: Any) -> Tensor:
    """The tree as a tensor of uint8."""
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_without_tensors(tree, tensors))
    tensors[_TREE] = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
    return torch.frombuffer(bytearray(save(tensors)), dtype=torch.uint8)


def tree_from_bytes(data: Tensor) -> Any:
    """The tree that `tree_to_bytes` was given; the bytes may have become numbers of another type."""
    try:
        tensors = load(data.detach().to("cpu", torch.uint8).numpy().tobytes())
        return _with_tensors(json.loads(tensors.pop(_TREE).numpy().tobytes()), tensors)
    except (SafetensorError, KeyError, ValueError) as error:
        raise RecordError(
            "The saved state of a balancer should be what `state_dict` gave. Found other bytes "
            f"({type(error).__name__}). Load the checkpoint without it, with `strict=False`."
        ) from error


def _without_tensors(tree: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, Tensor):
        name = str(len(tensors))
        tensors[name] = tree.detach().cpu().contiguous().clone()
        return {_TENSOR: name}
    if isinstance(tree, dict):
        return {key: _without_tensors(item, tensors) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        return [_without_tensors(item, tensors) for item in tree]
    return tree


def _with_tensors(tree: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, dict):
        if set(tree) == {_TENSOR}:
            return tensors[tree[_TENSOR]]
        return {key: _with_tensors(item, tensors) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_with_tensors(item, tensors) for item in tree]
    return tree
