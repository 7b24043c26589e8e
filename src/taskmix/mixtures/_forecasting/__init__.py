"""What a mixture will give: laws fitted to a table, with how sure they are."""

from taskmix.mixtures._forecasting._forecast import Forecast, forecast_mixtures

__all__ = ["Forecast", "forecast_mixtures"]
