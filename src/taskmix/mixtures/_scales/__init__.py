"""Runs of several sizes of model: how ranks carry over, and the forecast at the large size."""

from taskmix.mixtures._scales._at_size import SizeForecast, forecast_at_size
from taskmix.mixtures._scales._carry import CarryOver, carry_over
from taskmix.mixtures._scales._mean import MeanExplained, explain_mean
from taskmix.mixtures._scales._ranks import RankCorrelation
from taskmix.mixtures._scales._settle import LargeRun, SettlingRuns, settle_with
from taskmix.mixtures._scales._suspect import TwoSizes, suspect_two_sizes
from taskmix.mixtures._scales._verdict import RankCarry

__all__ = [
    "CarryOver",
    "LargeRun",
    "MeanExplained",
    "RankCarry",
    "RankCorrelation",
    "SettlingRuns",
    "SizeForecast",
    "TwoSizes",
    "carry_over",
    "explain_mean",
    "forecast_at_size",
    "settle_with",
    "suspect_two_sizes",
]
