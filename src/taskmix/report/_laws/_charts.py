"""Vega-Lite of the figures about laws, as plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taskmix.report._drawing import FOCUS, PANEL, Spec

ROW, LAW, BESIDE = "row of the table", "law", "law, with another value beside"
CHOSEN, OTHER = "chosen", "on the front"
_COLOURS = {ROW: "var(--other)", LAW: "var(--label-1)", BESIDE: "var(--label-3)"}
_FRONT = {CHOSEN: "var(--label-1)", OTHER: "var(--ink-soft)"}


def _colour(colours: dict[str, str]) -> Spec:
    scale = {"domain": list(colours), "range": list(colours.values())}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def law_panel(
    *,
    x_title: str,
    y_title: str,
    x_domain: Sequence[float],
    y_domain: Sequence[float],
    by_logarithm: bool,
    shaded: tuple[float, float],  # where there are no data
    words_below: bool,  # whether the curve is at the top there
) -> Spec:
    """A curve with its band over the rows: fields `series`, `step`, `mean`, `low`, `high`, ..."""
    scale: Spec = {"domain": list(x_domain), "nice": False}
    x: Spec = {
        "field": "step",
        "type": "quantitative",
        "title": f"{x_title} (log scale)" if by_logarithm else x_title,
        "scale": scale | ({"type": "log"} if by_logarithm else {"zero": False}),
        "axis": {"tickCount": 5, "grid": False, "format": "~s" if x_domain[1] >= 1000 else "~g"},
    }
    y: Spec = {
        "type": "quantitative",
        "title": y_title,
        "scale": {"domain": list(y_domain), "nice": True, "zero": False},
        "axis": {"tickCount": 5},
    }
    mean: Spec = {"x": x, "y": y | {"field": "mean"}}
    tooltip = [{"field": "series", "title": "what"}, {"field": "shown", "title": "here"}]
    areas = [{"begin": shaded[0], "end": shaded[1]}] if shaded[0] < shaded[1] else []
    position = math.log if by_logarithm else float
    begin_x, edge, end_x = (position(value) for value in (x_domain[0], *shaded))
    share = (end_x - edge) / ((end_x - begin_x) or 1.0)
    ink = {"value": "var(--ink-soft)"}
    begin: Spec = {"x": x | {"field": "begin"}, "color": ink}

    def only(series: str) -> list[Spec]:
        return [{"filter": {"field": "series", "equal": series}}]

    bands: list[Spec] = [
        {
            "transform": only(LAW),
            "mark": {"type": "area", "opacity": opacity, "clip": True},
            "encoding": {"x": x, "y": y | {"field": low}, "y2": {"field": high}},
        }
        for low, high, opacity in (("lowest", "highest", 0.13), ("low", "high", 0.28))
    ]
    return PANEL | {
        "height": 250,
        "params": [FOCUS],
        "encoding": {"color": _colour(_COLOURS)},
        "layer": [
            {
                "data": {"values": areas},
                "mark": {"type": "rect", "opacity": 0.12},
                "encoding": {**begin, "x2": {"field": "end"}},
            },
            {
                "data": {"values": areas},
                "mark": {
                    "type": "text",
                    "align": "left",
                    "baseline": "bottom" if words_below else "top",
                    "dx": 5,
                    "dy": -5 if words_below else 5,
                    "fontSize": 11,
                    "text": "outside the data",
                    # In a narrow part the words would leave it.
                    "opacity": {"expr": f"{share:.3f} * width > 95 ? 1 : 0"},
                },
                "encoding": {**begin, "y": {"value": "height" if words_below else 0}},
            },
            {
                "transform": only(ROW),
                "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.45},
                "encoding": mean | {"tooltip": tooltip},
            },
            *bands,
            {
                "transform": only(BESIDE),
                "mark": {"type": "line", "strokeWidth": 1.25, "strokeDash": [5, 3], "clip": True},
                "encoding": mean | {"detail": {"field": "line"}, "tooltip": tooltip},
            },
            {
                "transform": only(LAW),
                "mark": {"type": "line", "strokeWidth": 2.25, "clip": True},
                "encoding": mean | {"tooltip": tooltip},
            },
        ],
    }


def front_panel(y_title: str) -> Spec:
    """Error against signs: fields `series`, `signs`, `mean`, `formula`, `shown`, `beyond`."""
    x: Spec = {
        "field": "signs",
        "type": "quantitative",
        "title": "signs of the formula",
        "scale": {"zero": False, "nice": True, "padding": 12},
        "axis": {"tickCount": 6, "grid": False, "format": "d"},
    }
    y: Spec = {
        "field": "mean",
        "type": "quantitative",
        "title": y_title,
        "scale": {"type": "log", "nice": True},
        "axis": {"tickCount": 4, "format": "~g", "grid": False},
    }
    where: Spec = {
        "x": x,
        "y": y,
        "tooltip": [
            {"field": "series", "title": "law"},
            {"field": "formula", "title": "formula"},
            {"field": "shown", "title": "held out"},
            {"field": "beyond", "title": "left-out range"},
        ],
    }
    test = f"datum.series === '{CHOSEN}'"
    return PANEL | {
        "height": 230,
        "params": [FOCUS],
        "encoding": {"color": _colour(_FRONT)},
        "layer": [
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.25},
                "encoding": {"x": x, "y": y, "color": {"value": "var(--line)"}},
            },
            {
                "mark": {"type": "point", "filled": True, "opacity": 1},
                "encoding": {
                    **where,
                    "size": {"condition": {"test": test, "value": 170}, "value": 60},
                },
            },
            {
                "transform": [{"filter": test}],
                "mark": {"type": "text", "dy": -16, "fontSize": 11, "text": "chosen"},
                "encoding": {"x": x, "y": y},
            },
        ],
    }
