"""The front of laws as a chart: held-out error against complexity."""

from __future__ import annotations

from typing import Any

from taskmix.laws import Front


def front_chart(front: Front) -> dict[str, Any]:
    """A Vega-Lite chart: every law a point, the chosen one filled and named.

    >>> from taskmix.laws import LawRegressor
    >>> n = np.arange(1.0, 21.0)
    >>> front = LawRegressor(enough=0.99).fit({"n": n}, 3 * n).front_
    >>> front_chart(front)["title"]
    {'text': 'Laws of y', 'subtitle': 'y = 3*n'}
    """
    values = [
        {
            "complexity": law.complexity,
            "error": max(law.errors.held_out, 1e-300) ** 0.5,
            "beyond": law.errors.left_out**0.5,
            "formula": str(law),
            "chosen": law is front.chosen,
        }
        for law in front
    ]
    x = {"field": "complexity", "type": "quantitative", "title": "signs of the formula"}
    y = {
        "field": "error",
        "type": "quantitative",
        "title": "held-out error (root mean square)",
        "scale": {"type": "log"},
    }
    tooltip = [
        {"field": "formula", "type": "nominal"},
        {"field": "error", "type": "quantitative", "format": ".4g", "title": "held out"},
        {"field": "beyond", "type": "quantitative", "format": ".4g", "title": "left-out range"},
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "width": 560,
        "height": 320,
        "title": {"text": f"Laws of {front.chosen.target}", "subtitle": str(front.chosen)},
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "line", "interpolate": "step-after", "color": "#9aa5b1"},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": {"type": "point", "size": 70, "tooltip": True},
                "encoding": {
                    "x": x,
                    "y": y,
                    "fill": {
                        "condition": {"test": "datum.chosen", "value": "#0b6fa4"},
                        "value": "white",
                    },
                    "stroke": {"value": "#0b6fa4"},
                    "tooltip": tooltip,
                },
            },
        ],
    }
