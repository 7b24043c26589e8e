"""Laws and how far they can be trusted.

A fitted form becomes a law with intervals (`_law.py`). Of many the front keeps what each further sign
buys (`_front.py`), and one is chosen (`_choose.py`) by its errors on rows and ranges that it has not
seen (`_judge.py`, `_ranges.py`), unless it fails where it is asked to hold (`_holding.py`, with a box,
what fails in it and demands). Laws that cannot be told apart are stacked (`_stack.py`), and runs that
would tell are proposed (`_next_runs.py`). Where deviations go together, rows do not count one by one
(`_evidence.py`). What a form may be off by beyond the data is learned from the
left-out ranges (`_discrepancy.py`). A law's constants can be drawn anew (`_bootstrap.py`) or given to
groups of rows (`_groups.py`), and given formulas are judged on the same rows (`_compare.py`), those of
the paper among them (`_published.py`).
"""

from taskmix.laws._judging._bootstrap import Bootstrap, bootstrap_law
from taskmix.laws._judging._box import Box
from taskmix.laws._judging._compare import FormulaComparison, compare_formulas, paper_comparisons
from taskmix.laws._judging._demands import Demands
from taskmix.laws._judging._factors import TARGET, GroupFactors
from taskmix.laws._judging._front import Front, make_front
from taskmix.laws._judging._given import fit_formula
from taskmix.laws._judging._groups import GroupedLaw, fit_groups
from taskmix.laws._judging._holding import Holding
from taskmix.laws._judging._law import Errors, Gain, Law, LawPrediction
from taskmix.laws._judging._next_runs import NextLawRun, NextLawRuns, next_law_runs
from taskmix.laws._judging._published import BOUND_RATES, PAPER_LAWS
from taskmix.laws._judging._rows import (
    FittedConstant,
    FrontRow,
    GroupRow,
    LawRow,
    SharedRow,
    StackRow,
    fitted_constants,
    law_row,
)
from taskmix.laws._judging._stack import Stack

__all__ = [
    "BOUND_RATES",
    "PAPER_LAWS",
    "TARGET",
    "Bootstrap",
    "Box",
    "Demands",
    "Errors",
    "FittedConstant",
    "FormulaComparison",
    "Front",
    "FrontRow",
    "Gain",
    "GroupFactors",
    "GroupRow",
    "GroupedLaw",
    "Holding",
    "Law",
    "LawPrediction",
    "LawRow",
    "NextLawRun",
    "NextLawRuns",
    "SharedRow",
    "Stack",
    "StackRow",
    "bootstrap_law",
    "compare_formulas",
    "fit_formula",
    "fit_groups",
    "fitted_constants",
    "law_row",
    "make_front",
    "next_law_runs",
    "paper_comparisons",
]
