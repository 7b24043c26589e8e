"""Figures 3a to 3c of the study of laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from taskmix.papers._laws._study import FIGURE_SIZE, LINE_SIZES, LINES


def laws_figure(table: pa.Table) -> dict[str, Any]:
    """Figures 3a to 3c: F1 against samples, relatedness and tasks, of a balanced table.

    >>> import pyarrow as pa
    >>> columns = {"n": [1000, 2000], "T": [1, 2], "alpha": [1.0, 0.9], "ami": [1.0, 0.7]}
    >>> table = pa.table({**columns, "f1": [0.5, 0.6], "seeds": [5, 5]})
    >>> [chart["encoding"]["x"]["title"] for chart in laws_figure(table)["hconcat"]]
    ['words per task', 'AMI', 'tasks']
    """
    rows: Sequence[dict[str, Any]] = table.to_pylist()
    for each in rows:
        single = each["T"] == 1
        each["curve"] = "single task" if single else f"alpha {each['alpha']:g}"
        each["size"] = f"n = {each['n']}"
    by_alpha = {"field": "curve", "type": "nominal", "title": None}
    charts = [
        _lines([r for r in rows if r["T"] <= 2 and _is_line(r)], "n", "words per task", by_alpha),
        _lines(
            [r for r in rows if r["T"] == 2 and r["n"] in LINE_SIZES],
            "ami",
            "AMI",
            {
                "field": "size",
                "type": "nominal",
                "title": None,
                "sort": [f"n = {n}" for n in LINE_SIZES],
            },
        ),
        _lines(
            [r for r in rows if r["n"] == FIGURE_SIZE and r["T"] > 1 and _is_line(r)],
            "T",
            "tasks",
            by_alpha,
        ),
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "hconcat": charts,
        "resolve": {"scale": {"color": "independent"}},
    }


def _is_line(each: dict[str, Any]) -> bool:
    return each["T"] == 1 or each["alpha"] in LINES


def _lines(
    values: list[dict[str, Any]], field: str, title: str, color: dict[str, Any]
) -> dict[str, Any]:
    return {
        "width": 300,
        "height": 260,
        "data": {"values": values},
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": {
            "x": {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False}},
            "y": {
                "field": "f1",
                "type": "quantitative",
                "title": "entity F1",
                "scale": {"zero": False},
            },
            "color": color,
        },
    }
