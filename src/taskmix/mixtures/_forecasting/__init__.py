"""What a mixture will give: laws fitted to a table, with how sure they are."""

from taskmix.mixtures._forecasting._forecast import Forecast, forecast_mixtures
from taskmix.mixtures._forecasting._own_data import OwnDataForecast, forecast_own_data

__all__ = ["Forecast", "OwnDataForecast", "forecast_mixtures", "forecast_own_data"]
