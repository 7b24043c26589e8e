"""Figures of a study, with the Vega-Lite of `_charts.py`.

Scores are in `_figures.py`, what happened on the way in `_traces.py`, the front of laws in `_front.py`.
"""

from taskmix.report._drawing._charts import FOCUS, LABEL_COLOURS, PANEL, Spec
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
    "PANEL",
    "Columns",
    "Figure",
    "Palette",
    "Panel",
    "Spec",
    "curve_figure",
    "front_chart",
    "loss_figure",
    "palette",
    "rounded",
    "score_figure",
    "share_figure",
    "variance_figure",
    "weight_figure",
]
