"""Domains that change, what they are like, and what a new one may be worth."""

from taskmix.mixtures._domains._apply import (
    apply_changes,
    merge_domains,
    rename_domains,
    split_domains,
)
from taskmix.mixtures._domains._change import DomainChange
from taskmix.mixtures._domains._change_files import read_changes
from taskmix.mixtures._domains._described import describe_changes
from taskmix.mixtures._domains._encoder import encoder_features
from taskmix.mixtures._domains._feature_files import read_features, write_features
from taskmix.mixtures._domains._features import DomainFeatures
from taskmix.mixtures._domains._folder import features_of_folder
from taskmix.mixtures._domains._how_far import HowFar, LeftOutDomain, how_far
from taskmix.mixtures._domains._merge_cost import MergeCost, merge_cost
from taskmix.mixtures._domains._new_domain import forecast_with_new_domain
from taskmix.mixtures._domains._stack import StackedTables, stack_tables
from taskmix.mixtures._domains._texts import domain_features

__all__ = [
    "DomainChange",
    "DomainFeatures",
    "HowFar",
    "LeftOutDomain",
    "MergeCost",
    "StackedTables",
    "apply_changes",
    "describe_changes",
    "domain_features",
    "encoder_features",
    "features_of_folder",
    "forecast_with_new_domain",
    "how_far",
    "merge_cost",
    "merge_domains",
    "read_changes",
    "read_features",
    "rename_domains",
    "split_domains",
    "stack_tables",
    "write_features",
]
