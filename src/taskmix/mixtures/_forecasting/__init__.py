"""What a mixture will give: laws fitted to a table, with how sure they are."""

from taskmix.mixtures._forecasting._forecast import (
    Forecast,
    LeftOutRuns,
    StackedForecast,
    forecast_mixtures,
    usual_laws,
)
from taskmix.mixtures._forecasting._own_data import (
    OwnDataForecast,
    forecast_own_data,
)

__all__ = [
    "Forecast",
    "LeftOutRuns",
    "OwnDataForecast",
    "StackedForecast",
    "forecast_mixtures",
    "forecast_own_data",
    "usual_laws",
]
