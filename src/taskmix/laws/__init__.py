"""Laws: formulas for what a model's score depends on, found in a table of results."""

from taskmix.laws._engines import GplearnEngine, OperonEngine
from taskmix.laws._fitting import read_table
from taskmix.laws._forms import Expression, Growth, evaluate_formula, parse_formula
from taskmix.laws._judging import (
    BOUND_RATES,
    PAPER_LAWS,
    Bootstrap,
    Errors,
    FormulaComparison,
    Front,
    Gain,
    GroupedLaw,
    Law,
    LawPrediction,
    bootstrap_law,
    compare_formulas,
    fit_groups,
    paper_comparisons,
)
from taskmix.laws._learning import LawRegressor
from taskmix.laws._searching import SearchOptions

__all__ = [
    "BOUND_RATES",
    "PAPER_LAWS",
    "Bootstrap",
    "Errors",
    "Expression",
    "FormulaComparison",
    "Front",
    "Gain",
    "GplearnEngine",
    "GroupedLaw",
    "Growth",
    "Law",
    "LawPrediction",
    "LawRegressor",
    "OperonEngine",
    "SearchOptions",
    "bootstrap_law",
    "compare_formulas",
    "evaluate_formula",
    "fit_groups",
    "paper_comparisons",
    "parse_formula",
    "read_table",
]
