"""The figures about transfer: who helps whom, by how much, and how far that can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmix.report._charts import (
    NAMED_ROW,
    Bounds,
    Spec,
    interval_dots,
    layered,
    metric_bounds,
    named_rows,
    predicted_against_observed,
    row_names,
    tooltip,
)
from taskmix.report._figures import Columns, Figure, Panel, rounded
from taskmix.report._words import count_of, counted, decimals_for, number, spread_words

if TYPE_CHECKING:
    from taskmix.transfer import SourceRow, TransferDocument


VERDICTS = ("helps", "harms", "as any other", "negligible", "cannot tell")
_COLOURS = ("var(--label-1)", "var(--label-2)", "var(--label-6)", "var(--label-6)", "var(--other)")
_SHAPES = ("triangle-up", "triangle-down", "diamond", "square", "circle")


def effect_figure(transfer: TransferDocument | None) -> Figure | None:
    """Gains with intervals, a panel a target."""
    if transfer is None:
        return None
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    gains = metric_bounds(transfer.measure).of_differences
    for place, target in enumerate(transfer.targets):
        rows = target.best_first
        name = f"effects-{place}"
        specs[name] = _effect_dots(
            sources=list(row_names([row.source for row in rows]).values()),
            x_title=f"gain in dev {transfer.measure}",
        )
        best = ", ".join(f"{row.source} {row.verdict}" for row in rows[:3])
        described = f"Gains of {target.target} with intervals, the largest first: {best}."
        runs = counted(target.subset_runs, "run")
        note = f"{runs} on {counted(target.subsets, 'subset')}"
        panels.append(
            Panel(
                f"chart-{name}", target.target, name, _effect_columns(rows, gains), described, note
            )
        )
    caption = (
        "Coefficients of the linear surrogate with 95 % intervals, in the unit of the outcome: right of "
        "zero helps. Triangles up help, triangles down harm, diamonds do as any other task would, "
        "squares do not matter, circles cannot be told."
    )
    return Figure("effects", caption, tuple(panels), "none", specs)


def prediction_figure(transfer: TransferDocument | None) -> Figure | None:
    """Held-out subsets: what the linear surrogate predicted and what came of them."""
    if transfer is None:
        return None
    panels: list[Panel] = []
    specs: dict[str, Spec] = {}
    bounds = metric_bounds(transfer.measure)
    for place, target in enumerate(transfer.targets):
        held = target.held_out
        pairs = ((row.observed, row.predicted) for row in held)
        values = [bounds.held(value) for pair in pairs for value in pair if math.isfinite(value)]
        if len(held) < 2 or not values or min(values) == max(values):
            continue
        name = f"predictions-{place}"
        margin = 0.05 * (max(values) - min(values))
        specs[name] = predicted_against_observed(
            low=bounds.held(min(values) - margin),
            high=bounds.held(max(values) + margin),
            title=transfer.measure,
            series="held out",
            beside={
                "sources": "trained with",
                "size": "sources",
                "shown": "observed, predicted",
            },
        )
        decimals = decimals_for(values)
        columns: Columns = {
            "series": ["held out"] * len(held),
            "predicted": [rounded(bounds.held(row.predicted)) for row in held],
            "mean": [rounded(bounds.held(row.observed)) for row in held],
            "sources": [", ".join(row.sources) for row in held],
            "size": [str(len(row.sources)) for row in held],
            "shown": [
                f"{number(row.observed, decimals)}, {number(row.predicted, decimals)}"
                for row in held
            ],
        }
        note = ""
        if (test := target.extrapolation.get("linear")) is not None:
            spearman, r_squared = (number(x.value, 2) for x in (test.spearman, test.r_squared))
            note = f"Spearman {spearman}, R² {r_squared}"
        described = f"{counted(len(held), 'held-out subset')} of {target.target}: {note}."
        panels.append(Panel(f"chart-{name}", target.target, name, columns, described, note))
    if not panels:
        return None
    caption = (
        "Subsets of other sizes, on which the surrogate was not fitted. On the broken line a prediction "
        "is right; a cloud beside it means that effects do not add up as they are assumed to. What is "
        "predicted beyond the metric stands at its end."
    )
    return Figure("predictions", caption, tuple(panels), "none", specs)


def _effect_columns(rows: Sequence[SourceRow], bounds: Bounds) -> Columns:
    decimals = decimals_for(row.gain for row in rows)
    names = row_names([row.source for row in rows])
    return {
        "row": [names[row.source] for row in rows],
        "source": [row.source for row in rows],
        "series": [row.verdict for row in rows],
        "mean": [rounded(bounds.held(row.gain)) for row in rows],
        "low": [rounded(bounds.held(row.low)) for row in rows],
        "high": [rounded(bounds.held(row.high)) for row in rows],
        "interval": [spread_words(row.gain, row.low, row.high, decimals) for row in rows],
        "further": [
            "" if row.further_subsets is None else count_of(row.further_subsets) for row in rows
        ],
    }


def _effect_dots(*, sources: Sequence[str], x_title: str) -> Spec:
    """A gain with its interval for each source: fields `row`, `source`, `series`, `mean`, ..."""
    x: Spec = {
        "type": "quantitative",
        "title": x_title,
        "scale": {"zero": True, "nice": True},
        "axis": {"tickCount": 4},
    }
    where: Spec = {
        "y": named_rows(sources),
        "tooltip": [
            {"field": "source"},
            *tooltip(series="verdict", interval="gain", further="more subsets to tell"),
        ],
    }
    shape = {
        "field": "series",
        "scale": {"domain": list(VERDICTS), "range": list(_SHAPES)},
        "legend": None,
    }
    return layered(
        interval_dots(x, where, shape=shape, zero="var(--ink)"),
        height=(NAMED_ROW if any("\n" in name for name in sources) else 20) * len(sources),
        colours=dict(zip(VERDICTS, _COLOURS, strict=True)),
    )
