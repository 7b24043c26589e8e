"""States of methods as plain trees of tensors, and back; and what a device needs of them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from taskmix.errors import RecordError


def state_to_tree(state: Any) -> Any:
    """Dataclasses become dictionaries, everything else stays."""
    if is_dataclass(state) and not isinstance(state, type):
        return {item.name: state_to_tree(getattr(state, item.name)) for item in fields(state)}
    return state


def state_from_tree(template: Any, tree: Any) -> Any:
    """The state that gave `tree`, beside the tensors of `template`, a fresh state of the method."""
    if is_dataclass(template) and not isinstance(template, type):
        names = {item.name for item in fields(template)}
        if not isinstance(tree, dict) or set(tree) != names:
            found = sorted(tree) if isinstance(tree, dict) else type(tree).__name__
            raise RecordError(
                f"The saved state should be a {type(template).__name__} with {sorted(names)}. "
                f"Found {found}. It was saved by another method or version: start afresh."
            )
        parts = {name: state_from_tree(getattr(template, name), tree[name]) for name in names}
        return replace(template, **parts)
    if isinstance(template, Tensor) and isinstance(tree, Tensor):
        return tree.detach().to(template.device, copy=True)
    return tree


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
