"""Mixtures: from a table of runs on mixtures of domains to the mixture of the next run."""

from taskmix.mixtures._domains import (
    DomainChange,
    DomainFeatures,
    StackedTables,
    apply_changes,
    domain_features,
    encoder_features,
    features_of_folder,
    merge_domains,
    read_changes,
    read_features,
    rename_domains,
    split_domains,
    stack_tables,
    write_features,
)
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
    "merge_domains",
    "read_changes",
    "read_features",
    "read_mixtures",
    "rename_domains",
    "split_domains",
    "stack_tables",
    "table_of_study",
    "write_features",
]
