"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._forecasting import Forecast, forecast_mixtures, forecast_own_data
from taskmix.mixtures._optimum import (
    DistanceToRuns,
    DomainGroup,
    FrontMixture,
    LearnedRepetition,
    MixtureGain,
    MixtureLimits,
    MixtureOptimum,
    MixtureSensitivity,
    MixtureTarget,
    ShareCurve,
    effective_tokens,
    find_front,
    find_optimum,
    learn_repetition,
    measure_distance,
    measure_sensitivity,
)
from taskmix.mixtures._reading import table_of_study
from taskmix.mixtures._table import MixtureTable

__all__ = [
    "DistanceToRuns",
    "DomainGroup",
    "Forecast",
    "FrontMixture",
    "LearnedRepetition",
    "MixtureGain",
    "MixtureLimits",
    "MixtureOptimum",
    "MixtureSensitivity",
    "MixtureTable",
    "MixtureTarget",
    "ShareCurve",
    "effective_tokens",
    "find_front",
    "find_optimum",
    "forecast_mixtures",
    "forecast_own_data",
    "learn_repetition",
    "measure_distance",
    "measure_sensitivity",
    "table_of_study",
]
