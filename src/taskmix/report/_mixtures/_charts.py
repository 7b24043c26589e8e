"""Vega-Lite of the figures about mixtures, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence

from taskmix.report._drawing import FOCUS, NAMED_ROW, PANEL, ROW_LABELS, Spec

ADVISED, OTHER = "advised", "other"
BETTER, WORSE, UNTOLD = "better", "worse", "cannot tell"
_COLOURS = {
    ADVISED: "var(--label-1)",
    OTHER: "var(--ink-soft)",
    BETTER: "var(--label-1)",
    WORSE: "var(--label-2)",
    UNTOLD: "var(--other)",
}
_ROW = 22  # pixels


def share_bars(rows: Sequence[str], largest: float) -> Spec:
    """A bar a domain: fields `row`, `name`, `mean`, `low`, `high`, `seen_low`, `seen_high`, ..."""
    x = _axis("share", [0, largest]) | {"axis": {"tickCount": 5, "format": ".0%"}}
    where = {"y": _rows(rows), "tooltip": _tooltip("name", "shown", "range", "seen")}
    return PANEL | {
        "height": _height(rows),
        "params": [FOCUS],
        "encoding": {"color": _colour()},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.86}, "opacity": 0.16, "clip": True},
                "encoding": {
                    "x": x | {"field": "seen_low"},
                    "x2": {"field": "seen_high"},
                    "color": {"value": "var(--other)"},
                    **where,
                },
            },
            {
                "mark": {"type": "bar", "height": {"band": 0.5}},
                "encoding": {"x": x | {"field": "mean"}, **where},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1.75},
                "encoding": {
                    "x": x | {"field": "low"},
                    "x2": {"field": "high"},
                    "color": {"value": "var(--ink)"},
                    **where,
                },
            },
        ],
    }


def interval_rows(rows: Sequence[str], x_title: str, *, zero_line: bool) -> Spec:
    """A dot with its interval for each row: fields `row`, `name`, `series`, `mean`, `low`, `high`."""
    x = _axis(x_title, None)
    where = {"y": _rows(rows), "tooltip": _tooltip("name", "shown")}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, **where},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 64, "opacity": 1},
            "encoding": {"x": x | {"field": "mean"}, **where},
        },
    ]
    if zero_line:
        line = {"x": x | {"datum": 0}, "color": {"value": "var(--ink)"}}
        layers.insert(0, {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": line})
    return PANEL | {
        "height": _height(rows),
        "params": [FOCUS],
        "encoding": {"color": _colour()},
        "layer": layers,
    }


def trade_line(first: str, second: str) -> Spec:
    """The front of two metrics: fields `first`, `second`, `low`, `high`, `name`, `shown`, `series`."""
    x, y = _axis(first, None), _axis(second, None)
    tooltip = _tooltip("shown", "name")
    return PANEL | {
        "height": 260,
        "params": [FOCUS],
        "encoding": {"color": _colour()},
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.5},
                "encoding": {"x": x | {"field": "first"}, "y": y | {"field": "second"}},
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6},
                "encoding": {
                    "x": x | {"field": "first"},
                    "y": y | {"field": "low"},
                    "y2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 56, "opacity": 1},
                "encoding": {
                    "x": x | {"field": "first"},
                    "y": y | {"field": "second"},
                    "tooltip": tooltip,
                },
            },
        ],
    }


def _axis(title: str, domain: Sequence[float] | None) -> Spec:
    scale: Spec = {"zero": False, "nice": True}
    if domain is not None:
        scale["domain"] = list(domain)
    return {"type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 4}}


def _rows(rows: Sequence[str]) -> Spec:
    return {
        "field": "row",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": list(rows)},
        "axis": ROW_LABELS | {"title": None, "domain": False, "grid": True},
    }


def _tooltip(*fields: str) -> list[Spec]:
    words = {"name": "which", "shown": "here", "range": "as good", "seen": "in runs"}
    return [{"field": field, "title": words[field]} for field in fields]


def _colour() -> Spec:
    scale = {"domain": list(_COLOURS), "range": list(_COLOURS.values())}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def _height(rows: Sequence[str]) -> int:
    return (NAMED_ROW if any("\n" in name for name in rows) else _ROW) * max(len(rows), 2)
