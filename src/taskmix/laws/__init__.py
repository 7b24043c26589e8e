"""Laws: formulas for what a model's score depends on, found in a table of results."""

from taskmix.laws._bootstrap import Bootstrap, bootstrap_law
from taskmix.laws._compare import Comparison, compare_formulas, document_comparisons
from taskmix.laws._document import BOUND_RATES, DOCUMENT_LAWS
from taskmix.laws._evaluate import evaluate
from taskmix.laws._expression import Expression
from taskmix.laws._front import Front
from taskmix.laws._gplearn import GplearnEngine
from taskmix.laws._groups import GroupedLaw, fit_groups
from taskmix.laws._growth import Growth
from taskmix.laws._law import Errors, Gain, Law, Prediction
from taskmix.laws._operon import OperonEngine
from taskmix.laws._parse import parse_formula
from taskmix.laws._regressor import LawRegressor
from taskmix.laws._search import SearchOptions
from taskmix.laws._table import read_table

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
