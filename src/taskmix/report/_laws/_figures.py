"""The figures about laws, from the document: curves, the front, predicted against observed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from taskmix.report._drawing import (
    Bounds,
    Columns,
    Figure,
    Panel,
    Spec,
    metric_bounds,
    predicted_against_observed,
    rounded,
)
from taskmix.report._laws._charts import (
    BESIDE,
    CHOSEN,
    LAW,
    OTHER,
    ROW,
    front_panel,
    law_panel,
)
from taskmix.report._study import UNKNOWN, counted, listed

if TYPE_CHECKING:
    from taskmix.laws import LawCurve, LawPicture, LawsDocument

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
        tooltip=(("where", "at"), ("shown", "observed, predicted")),
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
