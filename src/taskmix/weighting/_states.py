"""What becomes of methods' states: kept where a device says so, and larger by tasks first seen later."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from taskmix.errors import InputError


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
