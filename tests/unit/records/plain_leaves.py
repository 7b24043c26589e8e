"""Plain values of JSON as a flat table, to compare documents whose numbers may differ by rounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, float]]:
    """Every number with its place and type, in the order of the file; all else is in the place."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, f"{where}.{key}")
    elif isinstance(value, list) and value:
        for place, each in enumerate(value):
            yield from leaves(each, f"{where}[{place}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{where}: {type(value).__name__}", value
    else:
        yield f"{where} = {value!r}", 0.0
