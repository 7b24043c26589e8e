"""Vega-Lite of the figures about transfer, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence

from taskmix.report._drawing import FOCUS, PANEL, Spec

VERDICTS = ("helps", "harms", "negligible", "cannot tell")
_COLOURS = ("var(--label-1)", "var(--label-2)", "var(--label-6)", "var(--other)")
_SHAPES = ("triangle-up", "triangle-down", "square", "circle")
_MOST_NUMBERED = 14  # tasks; with more, cells are too small for numbers


def _verdict_colour() -> Spec:
    scale = {"domain": list(VERDICTS), "range": list(_COLOURS)}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def heat_map(*, sources: Sequence[str], targets: Sequence[str]) -> Spec:
    """A cell a pair: fields `source`, `target`, `series` (the verdict), `strength`, `told`, `shown`.

    What cannot be told has an outline instead of a filling, and a question mark.
    """
    row_height = 34 if len(sources) <= _MOST_NUMBERED else 18
    cell: Spec = {
        "x": {
            "field": "target",
            "type": "nominal",
            "sort": None,
            "scale": {"domain": list(targets), "padding": 0.06},
            "axis": {
                "title": "target",
                "orient": "top",
                "labelAngle": 0 if len(targets) <= 5 else -40,
                "labelLimit": 110,
                "domain": False,
                "ticks": False,
                "labelOverlap": False,
            },
        },
        "y": {
            "field": "source",
            "type": "nominal",
            "sort": None,
            "scale": {"domain": list(sources), "padding": 0.06},
            "axis": {
                "title": "source",
                "labelLimit": 128,
                "domain": False,
                "grid": False,
                "labelOverlap": False,
            },
        },
        "tooltip": [
            {"field": "source"},
            {"field": "target"},
            {"field": "series", "title": "verdict"},
            {"field": "interval", "title": "gain"},
            {"field": "further", "title": "more subsets to tell"},
        ],
    }
    strength = {"domain": [0, 1], "range": [0.2, 0.8], "type": "sqrt"}
    layers: list[Spec] = [
        {
            "transform": [{"filter": "datum.told"}],
            "mark": {"type": "rect", "cornerRadius": 2},
            "encoding": {
                **cell,
                "opacity": {
                    "field": "strength",
                    "type": "quantitative",
                    "scale": strength,
                    "legend": None,
                },
            },
        },
        {
            "transform": [{"filter": "!datum.told"}],
            "mark": {
                "type": "rect",
                "cornerRadius": 2,
                "filled": True,
                "fill": "transparent",
                "strokeWidth": 1.2,
                "strokeDash": [3, 3],
            },
            "encoding": {
                **cell,
                "stroke": {"value": "var(--other)"},
                "color": {"value": "transparent"},
            },
        },
    ]
    if max(len(sources), len(targets)) <= _MOST_NUMBERED:
        text = {"value": "var(--ink)"}
        room = {"expr": "bandwidth('x') > 36 ? 1 : 0"}  # on a phone they would overlap
        layers.append(
            {
                "mark": {"type": "text", "fontSize": 11, "opacity": room},
                "encoding": {**cell, "text": {"field": "shown"}, "color": text},
            }
        )
    return PANEL | {
        "height": row_height * len(sources),
        "params": [FOCUS],
        "encoding": {"color": _verdict_colour()},
        "layer": layers,
    }


def effect_dots(*, sources: Sequence[str], x_title: str) -> Spec:
    """A gain with its interval for each source: fields `source`, `series`, `mean`, `low`, `high`."""
    x: Spec = {
        "type": "quantitative",
        "title": x_title,
        "scale": {"zero": True, "nice": True},
        "axis": {"tickCount": 4},
    }
    where: Spec = {
        "y": {
            "field": "source",
            "type": "nominal",
            "sort": None,
            "scale": {"domain": list(sources)},
            "axis": {"title": None, "labelLimit": 128, "domain": False, "grid": True},
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
        "height": 20 * len(sources),
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


def predicted_against_observed(*, low: float, high: float, title: str) -> Spec:
    """A dot a held-out subset about the line of equality: fields `predicted`, `mean`, `series`."""

    def axis(field: str, words: str) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": words,
            "scale": {"zero": False, "nice": True, "domain": [low, high]},
            "axis": {"tickCount": 4},
        }

    x, y = axis("predicted", f"predicted {title}"), axis("mean", f"observed {title}")
    colour = {"domain": ["held out"], "range": ["var(--label-1)"]}
    equal = {"values": [{"predicted": low, "mean": low}, {"predicted": high, "mean": high}]}
    return PANEL | {
        "height": 200,
        "params": [FOCUS],
        "encoding": {
            "color": {"field": "series", "type": "nominal", "scale": colour, "legend": None}
        },
        "layer": [
            {
                "data": equal,
                "mark": {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1},
                "encoding": {"x": x, "y": y, "color": {"value": "var(--ink-soft)"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 48, "opacity": 0.8},
                "encoding": {
                    "x": x,
                    "y": y,
                    "tooltip": [
                        {"field": "sources", "title": "trained with"},
                        {"field": "size", "title": "sources"},
                        {"field": "shown", "title": "observed, predicted"},
                    ],
                },
            },
        ],
    }
