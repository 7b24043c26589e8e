"""The charts of laws: curves with what lies outside the data, the front, predictions against rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taskmix.report._charts import (
    Bounds,
    Spec,
    layered,
    metric_bounds,
    predicted_against_observed,
    tooltip,
)
from taskmix.report._figures import Columns, Figure, Panel, rounded
from taskmix.report._words import UNKNOWN, counted, listed

if TYPE_CHECKING:
    from taskmix.laws import Front, LawCurve, LawPicture, LawsDocument


ROW, LAW, BESIDE = "row of the table", "law", "law, with another value beside"
CHOSEN, OTHER = "chosen", "on the front"
_COLOURS = {ROW: "var(--other)", LAW: "var(--label-1)", BESIDE: "var(--label-3)"}
_FRONT = {CHOSEN: "var(--label-1)", OTHER: "var(--ink-soft)"}


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
    words = tooltip(series="what", shown="here")
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
    return layered(
        [
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
                "encoding": mean | {"tooltip": words},
            },
            *bands,
            {
                "transform": only(BESIDE),
                "mark": {"type": "line", "strokeWidth": 1.25, "strokeDash": [5, 3], "clip": True},
                "encoding": mean | {"detail": {"field": "line"}, "tooltip": words},
            },
            {
                "transform": only(LAW),
                "mark": {"type": "line", "strokeWidth": 2.25, "clip": True},
                "encoding": mean | {"tooltip": words},
            },
        ],
        height=250,
        colours=_COLOURS,
    )


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
        "tooltip": tooltip(
            series="law", formula="formula", shown="held out", beyond="left-out range"
        ),
    }
    test = f"datum.series === '{CHOSEN}'"
    return layered(
        [
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
        height=230,
        colours=_FRONT,
    )


_SEEN = 0.6  # of the range of the rows, by which a curve may leave it above and below


def curve_figure_of_laws(document: LawsDocument) -> Figure | None:
    """The law against each of its inputs; a panel an input."""
    picture = document.picture
    if picture is None or not picture.curves:
        return None
    bounds = metric_bounds(document.target)
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    for place, curve in enumerate(picture.curves):
        name = f"curve-{place}"
        seen = _seen(curve, picture, bounds)
        specs[name] = law_panel(
            x_title=curve.input,
            y_title=document.target,
            x_domain=(curve.at[0], curve.at[-1]),
            y_domain=seen,
            by_logarithm=curve.by_logarithm,
            shaded=(curve.inside[1], curve.at[-1]),
            words_below=curve.values[-1] > sum(seen) / 2,
        )
        others = point_words(curve.others)
        note = f"with {others}" if others else ""
        if curve.lines:
            values = " and ".join(f"{line.value:.6g}" for line in curve.lines)
            note += f"; broken: {curve.beside} = {values}"
        ends = ", ".join(f"{curve.values[k]:.4g} at {curve.at[k]:.4g}" for k in (0, -1))
        described = (
            f"{document.target} against {curve.input}: {ends}. Data from {curve.inside[0]:.4g} to "
            f"{curve.inside[1]:.4g}."
        )
        columns = _curve_columns(curve, picture, bounds)
        panels.append(Panel(f"chart-{name}", curve.input, name, columns, described, note))
    caption = (
        "The line is the law, with its 95 % interval (dark) and that of one more measurement (light), "
        "if its form is right. Grey dots are rows, whatever their other inputs are. In the grey part "
        "there are no data."
    )
    return Figure("curves", caption, tuple(panels), "none", specs)


def front_figure(document: LawsDocument) -> Figure | None:
    """Held-out error against complexity, the chosen law marked."""
    rows = [
        row for row in document.front if math.isfinite(row.held_out_mse) and row.held_out_mse > 0
    ]
    if len(rows) < 2:
        return None
    errors = [math.sqrt(row.held_out_mse) for row in rows]
    columns: Columns = {
        "series": [CHOSEN if row.chosen else OTHER for row in rows],
        "signs": [row.complexity for row in rows],
        "mean": [rounded(error) for error in errors],
        "formula": [row.formula for row in rows],
        "shown": [f"{error:.4g}" for error in errors],
        "beyond": [root_words(row.left_out_mse) for row in rows],
    }
    words = "; ".join(
        f"{row.complexity} signs, error {error:.3g}{', chosen' if row.chosen else ''}"
        for row, error in zip(rows[:20], errors, strict=False)
    )
    panel = Panel("chart-front", "The front", "front", columns, f"Laws by length: {words}.")
    caption = (
        "Every dot is a law: the shortest formula for its error on held-out rows (root mean square). "
        "A longer one has to earn its signs."
    )
    return Figure("front", caption, (panel,), "none", {"front": front_panel("held-out error")})


def observed_figure(document: LawsDocument) -> Figure | None:
    """Predicted against observed, a dot a row."""
    picture = document.picture
    if picture is None:
        return None
    bounds = metric_bounds(document.target)
    rows = [row for row in picture.rows if math.isfinite(row.predicted)]
    values = [bounds.held(each) for row in rows for each in (row.predicted, row.observed)]
    if not values or min(values) == max(values):
        return None
    margin = 0.04 * (max(values) - min(values))
    columns: Columns = {
        "series": ["row"] * len(rows),
        "predicted": [rounded(bounds.held(row.predicted)) for row in rows],
        "mean": [rounded(bounds.held(row.observed)) for row in rows],
        "where": [point_words(row.at) for row in rows],
        "shown": [f"{row.observed:.4g}, {row.predicted:.4g}" for row in rows],
    }
    spec = predicted_against_observed(
        low=bounds.held(min(values) - margin),
        high=bounds.held(max(values) + margin),
        title=document.target,
        series="row",
        beside={"where": "at", "shown": "observed, predicted"},
    )
    described = f"{counted(len(rows), 'row')} about the line on which a prediction is right."
    panel = Panel("chart-observed", "Rows", "observed", columns, described)
    shown = (
        "" if len(rows) == document.rows else f" {len(rows)} of {document.rows:,} rows are drawn."
    )
    caption = f"On the broken line the law is right.{shown}"
    return Figure("observed", caption, (panel,), "none", {"observed": spec})


def _seen(curve: LawCurve, picture: LawPicture, bounds: Bounds) -> tuple[float, float]:
    """What the panel shows from bottom to top: all rows, and the curve unless it runs away."""
    rows = [row.observed for row in picture.rows]
    lines = [value for line in curve.lines for value in line.values]
    near = _SEEN * ((max(rows) - min(rows)) or abs(max(rows)) or 1.0)
    low, high = min(rows) - near, max(rows) + near
    known = [value for value in (*curve.values, *lines) if math.isfinite(value)]
    held = [bounds.held(min(max(value, low), high)) for value in (*known, *rows)]
    return min(held), max(held)


def _curve_columns(curve: LawCurve, picture: LawPicture, bounds: Bounds) -> Columns:
    columns: Columns = {
        key: []
        for key in ("series", "step", "mean", "low", "high", "lowest", "highest", "line", "shown")
    }

    def add(series: str, x: float, ys: Sequence[float], line: str, words: str) -> None:
        held = [rounded(bounds.held(y)) for y in ys]
        for key, value in zip(columns, (series, rounded(x), *held, line, words), strict=True):
            columns[key].append(value)

    for row in picture.rows:
        words = f"{point_words(row.at)}: {row.observed:.4g}"
        add(ROW, row.at[curve.input], [row.observed] * 5, "", words)
    for line in curve.lines:
        beside = f"{curve.beside} = {line.value:.4g}"
        for x, y in zip(curve.at, line.values, strict=True):
            add(BESIDE, x, [y] * 5, beside, f"{y:.4g} at {curve.input} = {x:.4g}, {beside}")
    bands = (curve.values, curve.low, curve.high, curve.lowest, curve.highest)
    for x, *ys in zip(curve.at, *bands, strict=True):
        words = f"{ys[0]:.4g} ({ys[1]:.4g} to {ys[2]:.4g}) at {curve.input} = {x:.4g}"
        add(LAW, x, ys, "", words)
    return columns


def root_words(mean_square: float) -> str:
    """A root mean square with four digits; a dash where it is not known."""
    return f"{math.sqrt(mean_square):.4g}" if mean_square >= 0 else UNKNOWN


def point_words(point: Mapping[str, float]) -> str:
    """`n = 2000, T = 2`."""
    return listed([f"{name} = {value:.6g}" for name, value in point.items()], 6)


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
