"""Laws: formulas for what a model's score depends on, found in a table of results."""

from taskmix.laws._choose import Stack
from taskmix.laws._compare import (
    BOUND_RATES,
    PAPER_LAWS,
    bootstrap_law,
    compare_formulas,
    fit_formula,
    paper_comparisons,
)
from taskmix.laws._description import LawTable, describe_laws
from taskmix.laws._document import LawsDocument, is_laws_document, read_laws, write_laws
from taskmix.laws._evaluate import evaluate_formula
from taskmix.laws._expression import Expression
from taskmix.laws._front import Front
from taskmix.laws._groups import GroupedLaw, fit_groups
from taskmix.laws._law import Law
from taskmix.laws._learn import LearnedLaws, learn_laws
from taskmix.laws._parse import parse_formula
from taskmix.laws._picture import LawCurve, LawPicture
from taskmix.laws._regressor import LawRegressor
from taskmix.laws._search import SearchOptions
from taskmix.laws._table import read_table

__all__ = [
    "BOUND_RATES",
    "PAPER_LAWS",
    "Expression",
    "Front",
    "GroupedLaw",
    "Law",
    "LawCurve",
    "LawPicture",
    "LawRegressor",
    "LawTable",
    "LawsDocument",
    "LearnedLaws",
    "SearchOptions",
    "Stack",
    "bootstrap_law",
    "compare_formulas",
    "describe_laws",
    "evaluate_formula",
    "fit_formula",
    "fit_groups",
    "is_laws_document",
    "learn_laws",
    "paper_comparisons",
    "parse_formula",
    "read_laws",
    "read_table",
    "write_laws",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)
