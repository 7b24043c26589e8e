"""What a mixture will give: laws fitted to a table, with how sure they are."""

from taskmix.mixtures._forecasting._forecast import (
    Forecast,
    LeftOutRuns,
    StackedForecast,
    forecast_mixtures,
    usual_laws,
)

__all__ = ["Forecast", "LeftOutRuns", "StackedForecast", "forecast_mixtures", "usual_laws"]
