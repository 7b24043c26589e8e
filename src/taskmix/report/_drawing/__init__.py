"""Figures of a study, with the Vega-Lite of `_charts.py`.

Scores are in `_figures.py`, what happened on the way in `_traces.py`, the front of laws in `_front.py`.
"""

from taskmix.report._drawing._bounds import Bounds, metric_bounds
from taskmix.report._drawing._charts import (
    FOCUS,
    LABEL_COLOURS,
    NAMED_ROW,
    PANEL,
    ROW_LABELS,
    Spec,
    predicted_against_observed,
)
from taskmix.report._drawing._figures import (
    Columns,
    Figure,
    Palette,
    Panel,
    palette,
    rounded,
    score_figure,
)
from taskmix.report._drawing._front import front_chart
from taskmix.report._drawing._names import row_names
from taskmix.report._drawing._traces import (
    curve_figure,
    loss_figure,
    share_figure,
    variance_figure,
    weight_figure,
)

__all__ = [
    "FOCUS",
    "LABEL_COLOURS",
    "NAMED_ROW",
    "PANEL",
    "ROW_LABELS",
    "Bounds",
    "Columns",
    "Figure",
    "Palette",
    "Panel",
    "Spec",
    "curve_figure",
    "front_chart",
    "loss_figure",
    "metric_bounds",
    "palette",
    "predicted_against_observed",
    "rounded",
    "row_names",
    "score_figure",
    "share_figure",
    "variance_figure",
    "weight_figure",
]
