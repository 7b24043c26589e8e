"""Vega-Lite, as plain dictionaries.

Colours are the page's own CSS variables, so that a chart follows dark mode and print as text does.
Names of tasks and labels are data only: no name ever becomes a field name or part of an expression.

Names beside the rows of a chart are short enough for a phone, and still different from each other: a
long name has its begin and its end, on two lines; the tooltip and the tables have all of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from taskmix.errors import OptionError

_CORRELATIONS = ("matthews", "pearson", "spearman")  # from -1 to 1


@dataclass(frozen=True)
class Bounds:
    """The least and the largest value.

    Drawn values are held inside; then no axis passes them, as the ends that Vega rounds to are
    multiples of what divides 1.
    """

    low: float = -math.inf
    high: float = math.inf

    def held(self, value: float) -> float:
        """The value, or the end that it lies beyond; NaN stays."""
        return value if math.isnan(value) else min(max(value, self.low), self.high)

    @property
    def of_differences(self) -> Bounds:
        """Of a difference of two such values."""
        reach = self.high - self.low
        return Bounds(-reach, reach)


def metric_bounds(metric: str) -> Bounds:
    """Of a metric by its name; without an end where it has none or is not known."""
    from taskmix.tasks import find_metric

    if metric == "loss":
        return Bounds(low=0.0)
    try:
        higher = find_metric(metric).higher_is_better
    except OptionError:  # a metric of another version, or several at once
        return Bounds()
    if not higher:
        return Bounds(low=0.0)
    return Bounds(-1.0 if any(name in metric for name in _CORRELATIONS) else 0.0, 1.0)


LINE = 18  # characters; a third of a phone
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_NEAR = 6  # characters from where a line has to end, to look for a better place


def row_names(names: Sequence[str]) -> dict[str, str]:
    """What stands beside each row; lines are parted by a line feed."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        shown, number = _lines(name), 2
        while shown in taken:
            shown = _lines(name, f" ({number})")
            number += 1
        taken.add(shown)
        found[name] = shown
    return found


def _lines(name: str, mark: str = "") -> str:
    name = " ".join(name.split()) or name
    if len(name) + len(mark) <= LINE:
        return name + mark
    if len(name) + len(mark) <= 2 * LINE:
        place = _break(name, max(len(name) + len(mark) - LINE, 1), LINE)
        return f"{name[:place].rstrip()}\n{name[place:].lstrip()}{mark}"
    kept = LINE - len(mark)
    return f"{name[:LINE].rstrip()}\n{ELLIPSIS}{name[-(kept - 1) :].lstrip()}{mark}"


def _break(name: str, first: int, last: int) -> int:
    """Where to go on on the next line: behind the last space or sign before `last`, if there is one."""
    for place in range(last, max(first, last - _NEAR) - 1, -1):
        if name[place - 1] in " _-/,.:":
            return place
    return last


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


def label_colours(labels: Sequence[str]) -> dict[str, str]:
    """Each label's colour."""
    return {
        label: f"var(--label-{place % LABEL_COLOURS + 1})" for place, label in enumerate(labels)
    }


def task_colours(names: Sequence[str], coloured: Sequence[str]) -> dict[str, str]:
    """Each task's colour; grey for those that have none."""
    place = {name: f"var(--task-{number})" for number, name in enumerate(coloured, start=1)}
    return {name: place.get(name, "var(--other)") for name in names}


def layered(
    layers: Sequence[Spec],
    *,
    height: int,
    colours: Mapping[str, str],  # of each series
    x: Spec | None = None,  # that all layers share
) -> Spec:
    """A chart of layers, in the colours of their series."""
    scale = {"domain": list(colours), "range": list(colours.values())}
    colour = {"field": "series", "type": "nominal", "scale": scale, "legend": None}
    return PANEL | {
        "height": height,
        "params": [FOCUS],
        "encoding": ({} if x is None else {"x": x}) | {"color": colour},
        "layer": list(layers),
    }


def named_rows(rows: Sequence[str], **scale: float) -> Spec:
    """The axis of a chart with a row for each name, as `row_names` gives them."""
    return {
        "field": "row",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": list(rows), **scale},
        "axis": ROW_LABELS | {"title": None, "domain": False, "grid": True},
    }


def tooltip(**titles: str) -> list[Spec]:
    """Fields with what they are called beside the pointer."""
    return [{"field": field, "title": title} for field, title in titles.items()]


def interval_dots(
    x: Spec, where: Spec, *, size: int = 64, shape: Spec | None = None, zero: str = ""
) -> list[Spec]:
    """A dot at `mean` on a line from `low` to `high`; with a colour for `zero`, a line there."""
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, **where},
        },
        {
            "mark": {"type": "point", "filled": True, "size": size, "opacity": 1},
            "encoding": {
                "x": x | {"field": "mean"},
                **({} if shape is None else {"shape": shape}),
                **where,
            },
        },
    ]
    if zero:
        line = {"x": x | {"datum": 0}, "color": {"value": zero}}
        layers.insert(0, {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": line})
    return layers


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
    colours: Mapping[str, str],
    last_step: float,
    height: int,
    y_title: str | None = None,
    band: bool = False,  # from `low` to `high`
    log: bool = False,
    domain: Sequence[float] | None = None,
    thin: bool = False,  # many lines in one panel
) -> Spec:
    """Lines over steps, one a series: fields `step`, `series`, `mean` and, with a band, its ends."""
    dashes = [_DASHES[(place // LABEL_COLOURS) % len(_DASHES)] for place in range(len(colours))]
    dash = {"field": "series", "scale": {"domain": list(colours), "range": dashes}}
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
    return layered(layers, height=height, colours=colours, x=_step_axis(last_step))


def stacked_shares(*, colours: Mapping[str, str], last_step: float, height: int) -> Spec:
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
    return layered([area, _hover_rule()], height=height, colours=colours, x=_step_axis(last_step))


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
        "y": named_rows(rows, paddingInner=0.3, paddingOuter=0.15),
        "yOffset": {"field": "series", "scale": {"domain": list(labels)}},
        "opacity": _faded(1.0, 0.12),
        "tooltip": tooltip(
            name="task",
            series="label",
            shown="difference" if zero_line else "score",
            seeds="seeds",
        ),
    }
    layers = interval_dots(x, where, shape=shape, zero="var(--ink)" if zero_line else "")
    return layered(layers, height=row_height * len(rows), colours=label_colours(labels))


def predicted_against_observed(
    *, low: float, high: float, title: str, series: str, beside: Mapping[str, str]
) -> Spec:
    """Dots about the line of equality: fields `predicted`, `mean`, `series`, and those `beside`."""

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
    equal = {"values": [{"predicted": low, "mean": low}, {"predicted": high, "mean": high}]}
    return layered(
        [
            {
                "data": equal,
                "mark": {"type": "line", "strokeDash": [4, 3], "strokeWidth": 1},
                "encoding": {"x": x, "y": y, "color": {"value": "var(--ink-soft)"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 48, "opacity": 0.8},
                "encoding": {"x": x, "y": y, "tooltip": tooltip(**beside)},
            },
        ],
        height=200,
        colours={series: "var(--label-1)"},
    )
