"""Frozen options with arrays in them as plain JSON and named tensors, and back.

Only the classes that are named are made again, by their own constructors: a file runs no code. What
several parts share is one tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


def pack_state(value: Any) -> tuple[Any, dict[str, Tensor]]:
    """A value as plain JSON, and its arrays by name.

    Dataclasses become their fields, but for those that begin with an underscore; lists are tuples when
    they come back.
    """
    tensors: dict[str, Tensor] = {}
    names: dict[int, str] = {}

    def pack(part: Any, place: str) -> Any:
        if isinstance(part, np.ndarray):
            name = names.setdefault(id(part), place)
            tensors[name] = torch.from_numpy(np.ascontiguousarray(part))
            return {"array": name}
        if is_dataclass(part):
            named = [field.name for field in fields(part) if field.name[0] != "_"]
            made = {name: pack(getattr(part, name), f"{place}.{name}".strip(".")) for name in named}
            return {"made": type(part).__name__, "of": made}
        if isinstance(part, Mapping):
            return {"mapping": {key: pack(each, f"{place}.{key}") for key, each in part.items()}}
        if isinstance(part, tuple | list):
            return [pack(each, f"{place}.{number}") for number, each in enumerate(part)]
        return part

    return pack(value, ""), tensors


def unpack_state(packed: Any, tensors: Mapping[str, Tensor], known: Mapping[str, type[Any]]) -> Any:
    """What was packed; `known` are the classes that may be in it, by name."""
    if isinstance(packed, list):
        return tuple(unpack_state(each, tensors, known) for each in packed)
    if not isinstance(packed, Mapping):
        return packed
    if "array" in packed:
        return tensors[packed["array"]].numpy()
    found = packed["of"] if "made" in packed else packed["mapping"]
    values = {key: unpack_state(each, tensors, known) for key, each in found.items()}
    return known[packed["made"]](**values) if "made" in packed else values
