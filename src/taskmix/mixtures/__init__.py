"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._forecasting import (
    Forecast,
    LeftOutRuns,
    StackedForecast,
    forecast_mixtures,
    usual_laws,
)
from taskmix.mixtures._laws import (
    BoostedTrees,
    EffectiveDataLaw,
    ExponentialLaw,
    LogLinearLaw,
    MixtureLaw,
    ProcessLaw,
)
from taskmix.mixtures._table import MixtureTable

__all__ = [
    "BoostedTrees",
    "EffectiveDataLaw",
    "ExponentialLaw",
    "Forecast",
    "LeftOutRuns",
    "LogLinearLaw",
    "MixtureLaw",
    "MixtureTable",
    "ProcessLaw",
    "StackedForecast",
    "forecast_mixtures",
    "usual_laws",
]
