"""Vega-Lite of the figures about transfer, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence

from taskmix.report._drawing import FOCUS, NAMED_ROW, PANEL, ROW_LABELS, Spec

VERDICTS = ("helps", "harms", "negligible", "cannot tell")
_COLOURS = ("var(--label-1)", "var(--label-2)", "var(--label-6)", "var(--other)")
_SHAPES = ("triangle-up", "triangle-down", "square", "circle")


def _verdict_colour() -> Spec:
    scale = {"domain": list(VERDICTS), "range": list(_COLOURS)}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def effect_dots(*, sources: Sequence[str], x_title: str) -> Spec:
    """A gain with its interval for each source: fields `row`, `source`, `series`, `mean`, ..."""
    x: Spec = {
        "type": "quantitative",
        "title": x_title,
        "scale": {"zero": True, "nice": True},
        "axis": {"tickCount": 4},
    }
    where: Spec = {
        "y": {
            "field": "row",
            "type": "nominal",
            "sort": None,
            "scale": {"domain": list(sources)},
            "axis": ROW_LABELS | {"title": None, "domain": False, "grid": True},
        },
        "tooltip": [
            {"field": "source"},
            {"field": "series", "title": "verdict"},
            {"field": "interval", "title": "gain"},
            {"field": "further", "title": "more subsets to tell"},
        ],
    }
    shape = {"domain": list(VERDICTS), "range": list(_SHAPES)}
    zero = {"x": x | {"datum": 0}, "color": {"value": "var(--ink)"}}
    return PANEL | {
        "height": (NAMED_ROW if any("\n" in name for name in sources) else 20) * len(sources),
        "params": [FOCUS],
        "encoding": {"color": _verdict_colour()},
        "layer": [
            {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": zero},
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, **where},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 64, "opacity": 1},
                "encoding": {
                    "x": x | {"field": "mean"},
                    "shape": {"field": "series", "scale": shape, "legend": None},
                    **where,
                },
            },
        ],
    }
