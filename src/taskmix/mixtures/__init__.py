"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._swarm import (
    USUAL_PIECES,
    SwarmOptions,
    SwarmSpeed,
    TrainedSwarm,
    as_count,
    check_swarm_time,
    domains_of_swarm,
    estimate_swarm,
    say_duration,
    swarm_runs,
    train_swarm,
    train_tokenizer,
    write_table_files,
)
from taskmix.mixtures._table import MixtureTable

__all__ = [
    "USUAL_PIECES",
    "Forecast",
    "MixtureTable",
    "SwarmOptions",
    "SwarmSpeed",
    "TrainedSwarm",
    "as_count",
    "check_swarm_time",
    "domains_of_swarm",
    "estimate_swarm",
    "forecast_mixtures",
    "say_duration",
    "swarm_runs",
    "train_swarm",
    "train_tokenizer",
    "write_table_files",
]
