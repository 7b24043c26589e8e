"""What determines a run, as JSON, and the name that follows from it.

The same specification gives the same name on every machine, so asking for a run twice costs once.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from taskmix.errors import OptionError

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":")
)  # one for all: thousands are hashed
_LATER = "later"  # in a field's metadata


def describe(value: object) -> JSON:
    """A value as JSON: a frozen dataclass becomes its fields and its class's name under `kind`.

    Fields that begin with an underscore are a cache, not a setting, and are left out. The
    description of a description is itself.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Adam:
    ...     rate: float = 0.001
    >>> describe({"optimizer": Adam(), "sizes": (4, 2)})
    {'optimizer': {'kind': 'Adam', 'rate': 0.001}, 'sizes': [4, 2]}
    """
    return _describe(value, "specification")


def later_option(default: Any) -> Any:
    """A field that a class has since a later version: while it has its default it names no run anew.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Adam:
    ...     rate: float = 0.001
    ...     clip: float | None = later_option(None)
    >>> describe(Adam()), describe(Adam(clip=1.0))
    ({'kind': 'Adam', 'rate': 0.001}, {'kind': 'Adam', 'rate': 0.001, 'clip': 1.0})
    """
    return dataclasses.field(default=default, metadata={_LATER: True})


def specification_hash(specification: Mapping[str, object]) -> str:
    """Sixteen hexadecimal digits that name a specification; the order of its keys is no part of it.

    >>> specification_hash({"seed": 0, "rate": 0.1}) == specification_hash({"rate": 0.1, "seed": 0})
    True
    >>> specification_hash({"seed": 0, "rate": 0.1})
    'b307772b478e8a4e'
    """
    canonical = _CANONICAL.encode(describe(specification))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _describe(value: object, place: str) -> JSON:
    if isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or type(value) in (bool, int, str):
        return value  # type: ignore[return-value]
    if type(value) is float:
        return _describe_float(value, place)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, list | tuple):
        return [_describe(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, place): _describe(item, f"{place}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _describe_dataclass(value, place)
    raise OptionError(
        f"`{place}` should be made of frozen dataclasses, mappings, lists, numbers, strings, paths "
        f"and arrays. Found {type(value).__name__}. Give its settings or its name instead."
    )


def _describe_float(value: float, place: str) -> JSON:
    if math.isnan(value):
        raise OptionError(
            f"`{place}` should be a number. Found NaN, which equals nothing, itself included. "
            "Use None for a setting that is not set."
        )
    if math.isinf(value):
        return {"kind": "float", "value": repr(value)}  # JSON has no infinity
    return value


def _describe_dataclass(value: object, place: str) -> JSON:
    if not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise OptionError(
            f"`{place}` should not change while it names a run. Found {type(value).__name__}, a "
            "dataclass that can. Declare it with `frozen=True`."
        )
    described: dict[str, JSON] = {"kind": type(value).__name__}
    for field in dataclasses.fields(value):  # type: ignore[arg-type]
        unset = _LATER in field.metadata and getattr(value, field.name) == field.default
        if not field.name.startswith("_") and not unset:
            name = "kind_" if field.name == "kind" else field.name  # `kind` is the class's name
            described[name] = _describe(getattr(value, field.name), f"{place}.{field.name}")
    return described


def _key(key: object, place: str) -> str:
    if isinstance(key, str):
        return str(key)
    raise OptionError(
        f"The keys of `{place}` should be strings. Found {key!r}. Write it as a string."
    )
