"""What becomes of methods' states: kept where a device says so, and larger by tasks first seen later.

A tree of tensors, numbers and names is kept as one tensor of bytes, which every kind of checkpoint can
hold. A model's `state_dict` may go into a file of safetensors, which has tensors alone, or be read with
`torch.load(weights_only=True)`. The bytes are a safetensors file of their own: the tree's tensors, and
the rest as JSON beside them. Reading runs no code.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from taskmix.errors import InputError, RecordError


def chosen_state(condition: Tensor, new: Any, old: Any) -> Any:
    """`new` where `condition` holds, else `old`, tensor by tensor and without asking the device."""
    if is_dataclass(new) and not isinstance(new, type):
        parts = {
            item.name: chosen_state(condition, getattr(new, item.name), getattr(old, item.name))
            for item in fields(new)
        }
        return replace(new, **parts)
    if isinstance(new, Tensor) and new.device == condition.device:
        return torch.where(condition, new, old)
    return new


def grown_state(old: Any, *, like: Any, begun: Any, known: int) -> Any:
    """`old` of `known` tasks as a state of more; the new ones begin as a task of a fresh state does.

    `like` is a fresh state of all tasks, which gives the sizes. `begun` is a fresh one of `known` tasks:
    where a method's numbers are shares, a new task begins with the mean share, not a smaller one.
    """
    if is_dataclass(like) and not isinstance(like, type):
        parts = {
            item.name: grown_state(
                getattr(old, item.name),
                like=getattr(like, item.name),
                begun=getattr(begun, item.name),
                known=known,
            )
            for item in fields(like)
        }
        return replace(old, **parts)
    if isinstance(like, Tensor) and isinstance(old, Tensor) and old.dim() == like.dim():
        return _grown(old, like, begun, known)
    if old is None and like is None:
        return None
    raise InputError(
        "The state of a method that meets a task first seen later should be made of tensors and frozen "
        f"dataclasses. Found {type(old).__name__}. Name every task in the first step; give None for "
        "one that has no loss there."
    )


def _grown(old: Tensor, like: Tensor, begun: Tensor, known: int) -> Tensor:
    # A size that is the number of tasks grows; any other, such as that of gradients, is the old one's.
    sizes = [
        new if had == known and new != had else had
        for had, new in zip(old.shape, like.shape, strict=True)
    ]
    if list(old.shape) == sizes:
        return old
    grown = old.new_zeros(sizes)
    if begun.numel():
        grown[:] = begun.flatten()[0].to(old)
    grown[tuple(slice(0, had) for had in old.shape)] = old
    return grown


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
