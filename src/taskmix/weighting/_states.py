"""What a device needs of the states of methods."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor


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
