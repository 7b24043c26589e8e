"""Laws and how far they can be trusted.

A fitted form becomes a law with intervals (`_law.py`). Of many the front keeps what each further
sign buys, and one is chosen by its error on rows it has not seen (`_front.py`). A law's constants
can be drawn anew (`_bootstrap.py`) or given to groups of rows (`_groups.py`), and given formulas
are judged on the same rows (`_compare.py`), those of the paper among them (`_published.py`).
"""

from taskmix.laws._judging._bootstrap import Bootstrap, bootstrap_law
from taskmix.laws._judging._compare import FormulaComparison, compare_formulas, paper_comparisons
from taskmix.laws._judging._front import Front, make_front
from taskmix.laws._judging._given import fit_formula
from taskmix.laws._judging._groups import GroupedLaw, fit_groups
from taskmix.laws._judging._law import Errors, Gain, Law, LawPrediction
from taskmix.laws._judging._published import BOUND_RATES, PAPER_LAWS
from taskmix.laws._judging._rows import (
    FittedConstant,
    FrontRow,
    GroupRow,
    LawRow,
    fitted_constants,
    law_row,
)

__all__ = [
    "BOUND_RATES",
    "PAPER_LAWS",
    "Bootstrap",
    "Errors",
    "FittedConstant",
    "FormulaComparison",
    "Front",
    "FrontRow",
    "Gain",
    "GroupRow",
    "GroupedLaw",
    "Law",
    "LawPrediction",
    "LawRow",
    "bootstrap_law",
    "compare_formulas",
    "fit_formula",
    "fit_groups",
    "fitted_constants",
    "law_row",
    "make_front",
    "paper_comparisons",
]
