"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._domains import (
    DomainChange,
    DomainFeatures,
    StackedTables,
    apply_changes,
    domain_features,
    encoder_features,
    features_of_folder,
    forecast_with_new_domain,
    merge_domains,
    read_changes,
    read_features,
    rename_domains,
    split_domains,
    stack_tables,
    write_features,
)
from taskmix.mixtures._forecasting import Forecast, forecast_mixtures
from taskmix.mixtures._table import MixtureTable

__all__ = [
    "DomainChange",
    "DomainFeatures",
    "Forecast",
    "MixtureTable",
    "StackedTables",
    "apply_changes",
    "domain_features",
    "encoder_features",
    "features_of_folder",
    "forecast_mixtures",
    "forecast_with_new_domain",
    "merge_domains",
    "read_changes",
    "read_features",
    "rename_domains",
    "split_domains",
    "stack_tables",
    "write_features",
]
