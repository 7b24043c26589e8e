"""Vega-Lite, as plain dictionaries.

Colours are the page's own CSS variables, so that a chart follows dark mode and print as text does.
Names of tasks and labels are data only: no name ever becomes a field name or part of an expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Spec = dict[str, Any]

LABEL_COLOURS = 8  # `--label-1` ... in page.css; more labels take the same colours, dashed
TASK_COLOURS = 9  # `--task-1` ... in page.css; more tasks are grey
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])
_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
PANEL: Spec = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
# Names of rows as `row_names` gives them, one or two lines each.
ROW_LABELS: Spec = {
    "labelExpr": "split(datum.label, '\\n')",
    "labelLimit": 150,
    "labelLineHeight": 11,
    "labelOverlap": False,
}
NAMED_ROW = 26  # pixels, of a row whose name has two lines
# One series may be singled out by its chip in the legend; then the others fade.
FOCUS: Spec = {"name": "focus", "value": None}


def _faded(shown: float, hidden: float) -> Spec:
    test = "focus === null || focus === datum.series"
    return {"condition": {"test": test, "value": shown}, "value": hidden}


def label_colours(labels: Sequence[str]) -> Spec:
    """Each label's colour."""
    names = [f"var(--label-{place % LABEL_COLOURS + 1})" for place in range(len(labels))]
    return {"domain": list(labels), "range": names}


def task_colours(names: Sequence[str], coloured: Sequence[str]) -> Spec:
    """Each task's colour; grey for those that have none."""
    place = {name: f"var(--task-{number})" for number, name in enumerate(coloured, start=1)}
    return {"domain": list(names), "range": [place.get(name, "var(--other)") for name in names]}


def _step_axis(last_step: float) -> Spec:
    """Steps from zero to the panel's own last one."""
    return {
        "field": "step",
        "type": "quantitative",
        "title": "step",
        "scale": {"zero": True, "nice": False},
        "axis": {"tickCount": 4, "grid": False, "format": "~s" if last_step >= 10_000 else "d"},
    }


def _value_axis(title: str | None, *, log: bool, domain: Sequence[float] | None) -> Spec:
    scale: Spec = {"type": "log"} if log else {"zero": False}
    if domain is not None:
        scale |= {"domain": list(domain), "nice": True}
    heading = f"{title} (log scale)" if log and title else title
    axis = {"tickCount": 4, "format": "~g"} if log else {"tickCount": 4}
    return {"type": "quantitative", "title": heading, "scale": scale, "axis": axis}


def _hover_rule() -> Spec:
    """A line at the step nearest to the pointer; the page's tooltip lists the series there."""
    nearest = {"type": "point", "on": "pointerover", "clear": "pointerout", "nearest": True}
    return {
        "transform": [{"aggregate": [{"op": "count", "as": "series_here"}], "groupby": ["step"]}],
        "mark": {"type": "rule", "strokeWidth": 1},
        "params": [{"name": "hover", "select": nearest | {"encodings": ["x"]}}],
        "encoding": {
            "color": {"value": "var(--ink)"},  # of no series
            "opacity": {"condition": {"param": "hover", "empty": False, "value": 0.6}, "value": 0},
            "tooltip": {"field": "step", "type": "quantitative"},
        },
    }


def lines(
    *,
    colours: Spec,
    last_step: float,
    height: int,
    y_title: str | None = None,
    band: bool = False,  # from `low` to `high`
    log: bool = False,
    domain: Sequence[float] | None = None,
    thin: bool = False,  # many lines in one panel
) -> Spec:
    """Lines over steps, one a series: fields `step`, `series`, `mean` and, with a band, its ends."""
    count = len(colours["domain"])
    dashes = [_DASHES[(place // LABEL_COLOURS) % len(_DASHES)] for place in range(count)]
    dash = {"field": "series", "scale": {"domain": colours["domain"], "range": dashes}}
    y = _value_axis(y_title, log=log, domain=domain)
    layers: list[Spec] = []
    if band:
        layers.append(
            {
                "mark": {"type": "area", "interpolate": "linear"},
                "encoding": {
                    "y": y | {"field": "low"},
                    "y2": {"field": "high"},
                    "opacity": _faded(0.16, 0.02),
                },
            }
        )
    layers.append(
        {
            "mark": {"type": "line", "strokeWidth": 1.25 if thin else 2, "strokeJoin": "round"},
            "encoding": {
                "y": y | {"field": "mean"},
                "opacity": _faded(1.0, 0.12),
                **({} if thin else {"strokeDash": dash | {"legend": None}}),
            },
        }
    )
    layers.append(_hover_rule())
    colour = {"field": "series", "type": "nominal", "scale": colours, "legend": None}
    return PANEL | {
        "height": height,
        "params": [FOCUS],
        "encoding": {"x": _step_axis(last_step), "color": colour},
        "layer": layers,
    }


def stacked_shares(*, colours: Spec, last_step: float, height: int) -> Spec:
    """Areas that add up to one: fields `step`, `series`, `mean` and `order`."""
    area = {
        "mark": {"type": "area", "stroke": "var(--paper)", "strokeWidth": 0.75},
        "encoding": {
            "y": {
                "field": "mean",
                "type": "quantitative",
                "stack": "zero",
                "title": None,
                "scale": {"domain": [0, 1]},
                "axis": {"format": ".0%", "values": [0, 0.25, 0.5, 0.75, 1], "grid": False},
            },
            "order": {"field": "order", "type": "quantitative"},
            "opacity": _faded(1.0, 0.2),
        },
    }
    colour = {"field": "series", "type": "nominal", "scale": colours, "legend": None}
    return PANEL | {
        "height": height,
        "params": [FOCUS],
        "encoding": {"x": _step_axis(last_step), "color": colour},
        "layer": [area, _hover_rule()],
    }


def dots(
    *,
    rows: Sequence[str],
    labels: Sequence[str],
    x_title: str,
    row_height: int,
    zero_line: bool = False,
) -> Spec:
    """A dot with its interval for each row and label: fields `row`, `name`, `series`, `mean`, ..."""
    shapes = [_SHAPES[place % len(_SHAPES)] for place in range(len(labels))]
    x = {
        "type": "quantitative",
        "title": x_title,
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 5},
    }
    shape = {"field": "series", "scale": {"domain": list(labels), "range": shapes}, "legend": None}
    where = {
        "y": {
            "field": "row",
            "type": "nominal",
            "sort": None,
            "scale": {"domain": list(rows), "paddingInner": 0.3, "paddingOuter": 0.15},
            "axis": ROW_LABELS | {"title": None, "domain": False, "grid": True},
        },
        "yOffset": {"field": "series", "scale": {"domain": list(labels)}},
        "opacity": _faded(1.0, 0.12),
        "tooltip": [
            {"field": "name", "title": "task"},
            {"field": "series", "title": "label"},
            {"field": "shown", "title": "difference" if zero_line else "score"},
            {"field": "seeds", "title": "seeds"},
        ],
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, **where},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 64, "opacity": 1},
            "encoding": {"x": x | {"field": "mean"}, "shape": shape, **where},
        },
    ]
    if zero_line:
        line = {"x": x | {"datum": 0}, "color": {"value": "var(--ink)"}}
        layers.insert(0, {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": line})
    colour = {"field": "series", "type": "nominal", "scale": label_colours(labels), "legend": None}
    return PANEL | {
        "height": row_height * len(rows),
        "params": [FOCUS],
        "encoding": {"color": colour},
        "layer": layers,
    }


def predicted_against_observed(
    *, low: float, high: float, title: str, series: str, tooltip: Sequence[tuple[str, str]]
) -> Spec:
    """Dots about the line of equality: fields `predicted`, `mean`, `series`, and those of `tooltip`."""

    def axis(field: str, words: str) -> Spec:
        return {
            "field": field,
            "type": "quantitative",
            "title": words,
            "scale": {"zero": False, "nice": True, "domain": [low, high]},
            "axis": {"tickCount": 4},
        }

    x, y = (
        axis("predicted", f"predicted {title}".strip()),
        axis("mean", f"observed {title}".strip()),
    )
    colour = {"domain": [series], "range": ["var(--label-1)"]}
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
                    "tooltip": [{"field": field, "title": words} for field, words in tooltip],
                },
            },
        ],
    }
