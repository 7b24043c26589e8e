"""Many specifications in one small table: what all runs share, what tells the labels apart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskmix.report._study._data import RunRow

_LONGEST = 160  # characters of a value in a table; the full text is in the run's own record
_MOST_VALUES = 3
_MOST_ITEMS = 6
_HASH = re.compile("[0-9a-f]{32,}")


@dataclass(frozen=True)
class Specifications:
    shared: tuple[tuple[str, str], ...]  # setting, value
    differing: tuple[tuple[str, tuple[str | None, ...]], ...]  # setting, value of each label
    examples: tuple[tuple[str, str, str], ...]  # label, run, its whole specification


def specifications(runs: Sequence[RunRow], labels: Sequence[str]) -> Specifications:
    """Settings of all runs; seed and label are left out, being meant to differ."""
    by_label: dict[str, dict[str, dict[str, None]]] = {label: {} for label in labels}
    examples: dict[str, tuple[str, str, str]] = {}
    keys: dict[str, None] = {}
    for run in runs:
        theirs = [label for label in run.labels if label in by_label]
        if not theirs or not run.specification:
            continue
        text = json.dumps(run.specification, indent=2, ensure_ascii=False, default=str)
        for label in theirs:
            examples.setdefault(label, (label, run.name, text))
        for key, value in _flat(run.specification):
            if key not in ("seed", "label"):  # the latter in records of version 0.1
                keys[key] = None
                for label in theirs:
                    by_label[label].setdefault(key, {})[value] = None
    shared, differing = [], []
    described = [label for label in labels if by_label[label]]
    for key in keys:
        values = [tuple(by_label[label].get(key, ())) for label in described]
        if len(set(values)) == 1 and len(values[0]) == 1:
            shared.append((key, _short(values[0][0])))
        else:
            cells = tuple(_joined(tuple(by_label[label].get(key, ()))) for label in labels)
            differing.append((key, cells))
    ordered = tuple(examples[label] for label in labels if label in examples)
    return Specifications(tuple(shared), tuple(differing), ordered)


def _flat(value: Any, place: str = "") -> list[tuple[str, str]]:
    """Dotted settings with their values as text; lists stay whole."""
    if isinstance(value, Mapping) and (value or not place):
        return [
            pair
            for key, item in value.items()
            for pair in _flat(item, f"{place}.{key}" if place else str(key))
        ]
    if isinstance(value, str):
        return [(place, value)]
    if (
        isinstance(value, list)
        and value
        and all(isinstance(item, str | int | float) for item in value)
    ):
        rest = f" … ({len(value)})" if len(value) > _MOST_ITEMS else ""
        return [(place, ", ".join(map(str, value[:_MOST_ITEMS])) + rest)]
    return [(place, json.dumps(value, ensure_ascii=False, default=str))]


def _joined(values: Sequence[str]) -> str | None:
    if not values:
        return None
    if len(values) > _MOST_VALUES:
        return f"{len(values)} values"
    return " · ".join(_short(value) for value in values)


def _short(value: str) -> str:
    if _HASH.fullmatch(value):
        return f"{value[:12]}…"
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…"
