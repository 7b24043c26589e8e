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
from taskmix.mixtures._table import (
    MixtureTable,
)

__all__ = [
    "BoostedTrees",
    "DistanceToRuns",
    "DomainGroup",
    "EffectiveDataLaw",
    "ExponentialLaw",
    "Forecast",
    "FrontMixture",
    "LearnedRepetition",
    "LeftOutRuns",
    "LogLinearLaw",
    "MixtureGain",
    "MixtureLaw",
    "MixtureLimits",
    "MixtureOptimum",
    "MixtureSensitivity",
    "MixtureTable",
    "MixtureTarget",
    "ProcessLaw",
    "ShareCurve",
    "StackedForecast",
    "effective_tokens",
    "find_front",
    "find_optimum",
    "forecast_mixtures",
    "learn_repetition",
    "measure_distance",
    "measure_sensitivity",
    "usual_laws",
]
