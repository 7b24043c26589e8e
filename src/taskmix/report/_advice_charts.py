"""Vega-Lite of the figures about advice, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence

from taskmix.report._charts import (
    NAMED_ROW,
    Spec,
    interval_dots,
    layered,
    named_rows,
    tooltip,
)

STANDINGS = {"leads": "var(--accent)", "may be the best": "var(--ink)", "out": "var(--other)"}
STAGES = (
    "baselines",
    "transfer",
    "candidates",
    "race",
    "longer",
)  # their colours are those of labels
INSIDE, OUTSIDE = "inside", "outside"  # of the interval that was promised


def _across(title: str) -> Spec:
    return {
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 5, "grid": False},
    }


def gap_dots(names: Sequence[str], title: str) -> Spec:
    """How far each candidate is from the leader: fields `row`, `name`, `series`, `mean`, ..."""
    x = _across(title)
    x["scale"] = {"zero": True, "nice": True}
    where: Spec = {
        "y": named_rows(names),
        "tooltip": tooltip(name="way", series="standing", shown="difference", seeds="seeds"),
    }
    layers = interval_dots(x, where, size=70, zero="var(--ink-soft)")
    return layered(layers, height=NAMED_ROW * len(names), colours=STANDINGS)


def promise_bars(names: Sequence[str], title: str) -> Spec:
    """A bar from `low` to `high` with a line at `mean`, and where the score was `found`.

    One outside its bar is a diamond of another colour, so that neither colour nor shape is needed.
    """
    x = _across(title)
    where: Spec = {
        "y": named_rows(names),
        "tooltip": tooltip(name="task", shown="expected", came="came"),
    }
    promised = {"value": "var(--label-1)"}
    shape = {"domain": [INSIDE, OUTSIDE], "range": ["circle", "diamond"]}
    size = {"condition": {"test": f"datum.series === '{OUTSIDE}'", "value": 130}, "value": 55}
    return layered(
        [
            {
                "mark": {"type": "bar", "height": 12, "cornerRadius": 6, "opacity": 0.3},
                "encoding": {
                    "x": x | {"field": "low"},
                    "x2": {"field": "high"},
                    **where,
                    "color": promised,
                },
            },
            {
                "mark": {"type": "tick", "height": 12, "thickness": 2, "orient": "vertical"},
                "encoding": {"x": x | {"field": "mean"}, **where, "color": promised},
            },
            {
                "transform": [{"filter": "isValid(datum.found)"}],
                "mark": {"type": "point", "filled": True, "opacity": 1},
                "encoding": {
                    "x": x | {"field": "found"},
                    "shape": {"field": "series", "scale": shape, "legend": None},
                    "size": size,
                    **where,
                },
            },
        ],
        height=NAMED_ROW * len(names),
        colours={INSIDE: "var(--ink)", OUTSIDE: "var(--label-2)"},
    )


def budget_steps(title: str, stages: Sequence[str]) -> Spec:
    """Stages as bands from `begin` to `step`, and the leader's score after each as a line."""
    colours = {stage: f"var(--label-{STAGES.index(stage) + 1})" for stage in stages}
    x: Spec = {
        "type": "quantitative",
        "title": title,
        "scale": {"zero": True, "nice": False},
        "axis": {"tickCount": 5, "grid": False, "format": "~s"},
    }
    y: Spec = {
        "field": "mean",
        "type": "quantitative",
        "title": "mean dev score",
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 4},
    }
    words = tooltip(
        series="stage",
        cost="cost",
        leader="leads after it",
        shown="mean dev score",
        open="may be the best",
    )
    ink = {"value": "var(--ink)"}
    return layered(
        [
            {
                "mark": {"type": "rect", "opacity": 0.22},
                "encoding": {
                    "x": x | {"field": "begin"},
                    "x2": {"field": "step"},
                    "tooltip": words,
                },
            },
            {
                "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5},
                "encoding": {"x": x | {"field": "step"}, "y": y, "color": ink},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {"x": x | {"field": "step"}, "y": y, "tooltip": words, "color": ink},
            },
        ],
        height=220,
        colours=colours,
    )


def law_curve(*, last: float, more: float) -> Spec:
    """Evaluations as dots, the law as a line (broken beyond `last`), and what it says at `more`."""
    x: Spec = {
        "field": "step",
        "type": "quantitative",
        "title": "batches",
        "scale": {"zero": True, "nice": False, "domain": [0, 1.04 * more]},
        "axis": {"tickCount": 5, "grid": False, "format": "~s"},
    }
    y: Spec = {
        "type": "quantitative",
        "title": "mean dev score",
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 5},
    }
    mean = {"x": x, "y": y | {"field": "mean"}}
    words = tooltip(series="what", batches="batches", shown="mean dev score")
    colours = {
        "evaluation": "var(--other)",
        "law": "var(--label-1)",
        "beyond the data": "var(--label-1)",
        "expected": "var(--label-2)",
    }

    def only(*series: str) -> list[Spec]:
        return [{"filter": {"field": "series", "oneOf": list(series)}}]

    line = {"type": "line", "strokeWidth": 2}
    end = {"data": {"values": [{}]}, "mark": {"type": "rule", "strokeDash": [2, 3]}}
    return layered(
        [
            end
            | {
                "encoding": {
                    "x": {"datum": last, "type": "quantitative"},
                    "color": {"value": "var(--ink-soft)"},
                }
            },
            {
                "transform": only("evaluation"),
                "mark": {"type": "point", "filled": True, "size": 36, "opacity": 0.75},
                "encoding": {**mean, "tooltip": words},
            },
            {"transform": only("law"), "mark": line, "encoding": mean},
            {
                "transform": only("beyond the data"),
                "mark": line | {"strokeDash": [5, 4]},
                "encoding": mean,
            },
            {
                "transform": only("expected"),
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": x,
                    "y": y | {"field": "low"},
                    "y2": {"field": "high"},
                    "tooltip": words,
                },
            },
            {
                "transform": only("expected"),
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": {**mean, "tooltip": words},
            },
        ],
        height=250,
        colours=colours,
    )
