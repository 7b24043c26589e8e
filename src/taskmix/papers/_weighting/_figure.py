"""Figures 4, 8 and 9 of the BanditMTL paper: task variance and weights as training goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.papers._weighting._experiment import NewsgroupsOptions, ReviewsOptions, text_runs
from taskmix.papers._weighting._measures import Curves, curves
from taskmix.records import Study

POINTS = 40  # of a curve; each is the mean over a stretch of steps
WEIGHTS_OF = ("uncertainty", "gradnorm", "mgda", "bandit")  # the methods of Figures 8 and 9


def text_figure(options: NewsgroupsOptions | ReviewsOptions, study: Study) -> dict[str, Any]:
    """A Vega-Lite chart of a study that holds all runs.

    Above, the variance between the tasks' losses for each method, the mean over seeds; below, the
    weight of each task under the methods of the paper that have weights, of the first seed.

    `taskmix reproduce newsgroups --plot` draws it.
    """
    names = options.source.load().names
    runs = text_runs(options)
    variances, weights = [], []
    for method in options.methods:
        by_seed = [
            curves(study, [run for run in runs[method] if run.seed == seed], names)
            for seed in range(options.seeds)
        ]
        variances += _variance_points(method, by_seed)
        if method in WEIGHTS_OF:
            weights += _weight_points(method, by_seed[0], names)
    charts = [_variance_chart(variances)]
    if weights:
        charts.append(_weight_chart(weights))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "vconcat": charts,
        "resolve": {"scale": {"color": "independent"}},
    }


def _stretches(steps: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(steps), min(POINTS, steps))


def _variance_points(method: str, by_seed: list[Curves]) -> list[dict[str, Any]]:
    between = np.mean([each.losses.var(axis=1) for each in by_seed], axis=0)  # [step]
    return [
        {"method": method, "step": int(part[-1]) + 1, "variance": float(between[part].mean())}
        for part in _stretches(len(between))
    ]


def _weight_points(method: str, found: Curves, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {
            "method": method,
            "task": name,
            "step": int(part[-1]) + 1,
            "weight": float(found.weights[part, place].mean()),
        }
        for part in _stretches(len(found.weights))
        for place, name in enumerate(names)
    ]


def _variance_chart(values: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "width": 620,
        "height": 300,
        "title": "variance between the tasks' losses",
        "data": {"values": values},
        "mark": {"type": "line", "tooltip": True},
        "encoding": {
            "x": {"field": "step", "type": "quantitative"},
            "y": {
                "field": "variance",
                "type": "quantitative",
                "scale": {"type": "log"},
                "axis": {"format": "~g"},
            },
            "color": {
                "field": "method",
                "type": "nominal",
                "sort": None,
                "scale": {"scheme": "tableau20"},
            },
        },
    }


def _weight_chart(values: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "title": "weight of each task's loss",
        "data": {"values": values},
        "facet": {"field": "method", "type": "nominal", "title": None, "sort": list(WEIGHTS_OF)},
        "columns": 2,
        "spec": {
            "width": 290,
            "height": 160,
            "mark": {"type": "line", "tooltip": True},
            "encoding": {
                "x": {"field": "step", "type": "quantitative"},
                "y": {"field": "weight", "type": "quantitative"},
                "color": {
                    "field": "task",
                    "type": "nominal",
                    "sort": None,
                    "scale": {"scheme": "tableau20"},
                },
            },
        },
    }
