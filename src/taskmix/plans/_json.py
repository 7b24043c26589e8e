"""What a plan's file may have where: anything else is an error that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def known(document: Mapping[str, Any], *names: str) -> None:
    """Raises where a document has an entry that nobody reads."""
    if unknown := sorted(set(document) - set(names)):
        raise ValueError(f"the unknown entry {unknown[0]!r}")


def listing(value: object) -> list[Any]:
    """A list; nothing stands for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"a {type(value).__name__} where a list should be")
    return value


def mapping(value: object) -> dict[str, Any]:
    """A mapping; nothing stands for an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__} where a mapping should be")
    return value
