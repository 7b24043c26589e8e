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
from taskmix.mixtures._scales import (
    CarryOver,
    LargeRun,
    MeanExplained,
    RankCarry,
    RankCorrelation,
    Settling,
    SizeForecast,
    TwoSizes,
    carry_over,
    explain_mean,
    forecast_at_size,
    settle_with,
    suspect_two_sizes,
)
from taskmix.mixtures._table import (
    MixtureTable,
)

__all__ = [
    "CarryOver",
    "DomainChange",
    "DomainFeatures",
    "Forecast",
    "LargeRun",
    "MeanExplained",
    "MixtureTable",
    "RankCarry",
    "RankCorrelation",
    "Settling",
    "SizeForecast",
    "StackedTables",
    "TwoSizes",
    "apply_changes",
    "carry_over",
    "domain_features",
    "encoder_features",
    "explain_mean",
    "features_of_folder",
    "forecast_at_size",
    "forecast_mixtures",
    "merge_domains",
    "read_changes",
    "read_features",
    "read_mixtures",
    "rename_domains",
    "settle_with",
    "split_domains",
    "stack_tables",
    "suspect_two_sizes",
    "table_of_study",
    "write_features",
]
