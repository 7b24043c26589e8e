"""From a description back to the options it describes: the other way round of `records.describe`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from taskmix.errors import InputError, TaskmixError


def from_spec(description: Mapping[str, Any], *known: ModuleType) -> Any:
    """The frozen options of that `kind`; only public dataclasses of the modules are made.

    >>> import taskmix.policies
    >>> from_spec({"kind": "Exp3", "exploration": 0.2}, taskmix.policies)
    Exp3(exploration=0.2)
    """
    kind = description.get("kind")
    found = next((getattr(each, str(kind)) for each in known if kind in each.__all__), None)
    options = {key: _value(value, known) for key, value in description.items() if key != "kind"}
    if (
        not isinstance(found, type)
        or not dataclasses.is_dataclass(found)
        or not set(options) <= {field.name for field in dataclasses.fields(found)}
    ):
        raise InputError(
            "A description should name options of taskmix under `kind`, with their values. Found "
            f"{str(dict(description))[:200]}."
        )
    try:
        return found(**options)
    except (TaskmixError, TypeError, ValueError) as error:
        raise InputError(
            f"A description of {kind} should have values that it takes. Found {options} ({error})."
        ) from error


def _value(value: Any, known: tuple[ModuleType, ...]) -> Any:
    if isinstance(value, Mapping):
        return from_spec(value, *known)
    return tuple(_value(each, known) for each in value) if isinstance(value, list) else value
