"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._scales import (
    CarryOver,
    LargeRun,
    MeanExplained,
    RankCarry,
    RankCorrelation,
    Settling,
    SizeForecast,
    TwoSizes,
    carry_over,
    explain_mean,
    forecast_at_size,
    settle_with,
    suspect_two_sizes,
)
from taskmix.mixtures._table import MixtureTable

__all__ = [
    "CarryOver",
    "Forecast",
    "LargeRun",
    "MeanExplained",
    "MixtureTable",
    "RankCarry",
    "RankCorrelation",
    "Settling",
    "SizeForecast",
    "TwoSizes",
    "carry_over",
    "explain_mean",
    "forecast_at_size",
    "forecast_mixtures",
    "settle_with",
    "suspect_two_sizes",
]
