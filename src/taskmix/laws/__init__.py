"""Laws: formulas for what a model's score depends on, found in a table of results."""

from taskmix.laws._engines import GplearnEngine, OperonEngine
from taskmix.laws._fitting import read_table
from taskmix.laws._forms import Expression, Growth, evaluate, parse_formula
from taskmix.laws._judging import (
    BOUND_RATES,
    DOCUMENT_LAWS,
    Bootstrap,
    Comparison,
    Errors,
    Front,
    Gain,
    GroupedLaw,
    Law,
    Prediction,
    bootstrap_law,
    compare_formulas,
    document_comparisons,
    fit_groups,
)
from taskmix.laws._learning import LawRegressor
from taskmix.laws._searching import SearchOptions

__all__ = [
    "BOUND_RATES",
    "DOCUMENT_LAWS",
    "Bootstrap",
    "Comparison",
    "Errors",
    "Expression",
    "Front",
    "Gain",
    "GplearnEngine",
    "GroupedLaw",
    "Growth",
    "Law",
    "LawRegressor",
    "OperonEngine",
    "Prediction",
    "SearchOptions",
    "bootstrap_law",
    "compare_formulas",
    "document_comparisons",
    "evaluate",
    "fit_groups",
    "parse_formula",
    "read_table",
]
