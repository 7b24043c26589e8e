"""Charts as the data that a page carries for its script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from taskmix.report._drawing import Columns, Figure


def chart_payload(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """Specifications by name, and for each chart its own and its columns."""
    return {
        "specs": {name: spec for figure in figures.values() for name, spec in figure.specs.items()},
        "charts": {
            panel.id: {
                "spec": panel.spec,
                "unit": "share" if figure.id == "shares" else "",
                "columns": _compact(panel.columns),
            }
            for figure in figures.values()
            for panel in figure.panels
        },
    }


def script_json(value: object) -> str:
    """JSON that no parser of HTML can take for anything else."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _compact(columns: Columns) -> dict[str, Any]:
    """Words that repeat are sent once: the distinct ones, and which stands where."""
    compact: dict[str, Any] = {}
    for name, values in columns.items():
        if values and isinstance(values[0], str):
            distinct = {word: place for place, word in enumerate(dict.fromkeys(values))}
            compact[name] = {"of": list(distinct), "at": [distinct[word] for word in values]}
        else:
            compact[name] = values
    return compact
