"""Laws: formulas for what a model's score depends on, found in a table of results."""

from taskmix.laws._engines import GplearnEngine, OperonEngine
from taskmix.laws._fitting import read_table
from taskmix.laws._forms import Expression, evaluate_formula, parse_formula
from taskmix.laws._judging import (
    BOUND_RATES,
    PAPER_LAWS,
    Front,
    GroupedLaw,
    Law,
    Stack,
    bootstrap_law,
    compare_formulas,
    fit_formula,
    fit_groups,
    paper_comparisons,
)
from taskmix.laws._learning import (
    LawCurve,
    LawPicture,
    LawRegressor,
    LawsDocument,
    LawTable,
    LearnedLaws,
    describe_laws,
    is_laws_document,
    learn_laws,
    read_laws,
    write_laws,
)
from taskmix.laws._searching import SearchOptions

__all__ = [
    "BOUND_RATES",
    "PAPER_LAWS",
    "Expression",
    "Front",
    "GplearnEngine",
    "GroupedLaw",
    "Law",
    "LawCurve",
    "LawPicture",
    "LawRegressor",
    "LawTable",
    "LawsDocument",
    "LearnedLaws",
    "OperonEngine",
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
