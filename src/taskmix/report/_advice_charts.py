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
        "tooltip": tooltip(name="candidate", series="standing", shown="difference", seeds="seeds"),
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
