"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._forecasting import (
    Forecast,
    forecast_mixtures,
)
from taskmix.mixtures._reading import (
    read_mixtures,
    table_of_study,
)
from taskmix.mixtures._table import (
    MixtureTable,
)

__all__ = [
    "Forecast",
    "MixtureTable",
    "forecast_mixtures",
    "read_mixtures",
    "table_of_study",
]
