"""Figure 1 of the selection paper: mean score over arms as training goes on, a band for each policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from taskmix.papers._selection._bandit import BanditResult

# Dark enough to be told apart on white, by people who do not see red and green alike as well.
COLOURS = {
    "random": "#7a7a7a",
    "exp3s": "#d55e00",
    "paper_recipe": "#0072b2",
    "auto": "#009e73",
    "staged": "#cc79a7",
    "both": "#56b4e9",
    "oracle": "#000000",
    "optimum": "#e69f00",
}


def bandit_figure(result: BanditResult, environment: int | None = 0) -> dict[str, Any]:
    """A Vega-Lite chart: the median over seeds in one environment, or of the means over all (None).

    Bands go from the lowest to the highest seed, or from the lowest to the highest environment.

    >>> curves, none = {"random": np.array([[[0.1, 0.3, 0.2]]])}, np.zeros((1, 3))
    >>> drawn = bandit_figure(
    ...     BanditResult(curves=curves, entropies=none, stages=none, steps=np.array([9]))
    ... )
    >>> drawn["data"]["values"]
    [{'policy': 'random', 'step': 9, 'score': 0.2, 'low': 0.1, 'high': 0.3}]
    """
    values = []
    for name, curve in result.curves.items():
        runs = curve.mean(axis=2) if environment is None else curve[:, environment]  # [point, run]
        for step, line in zip(result.steps.tolist(), runs, strict=True):
            values.append(
                {
                    "policy": name,
                    "step": step,
                    "score": float(np.median(line)),
                    "low": float(line.min()),
                    "high": float(line.max()),
                }
            )
    names = list(result.curves)
    colour = {
        "field": "policy",
        "type": "nominal",
        "scale": {"domain": names, "range": [COLOURS[name] for name in names]},
        "legend": {"symbolOpacity": 1},
    }
    step = {"field": "step", "type": "quantitative", "title": "step"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 560,
        "height": 320,
        "background": "white",
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.15},
                "encoding": {
                    "x": step,
                    "y": {
                        "field": "low",
                        "type": "quantitative",
                        "title": "mean score over the arms",
                        "scale": {"zero": False},
                    },
                    "y2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "line", "tooltip": True},
                "encoding": {
                    "x": step,
                    "y": {"field": "score", "type": "quantitative"},
                    "color": colour,
                },
            },
        ],
    }
