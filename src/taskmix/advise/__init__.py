"""From tasks to a plan with evidence."""

from taskmix.advise._adviser import Advice, AdviseOptions, Adviser, News
from taskmix.advise._answer import Answer, advice_document, answer, plan_of
from taskmix.advise._budget import Budget, Prices, Purse
from taskmix.advise._candidates import Candidate, Part
from taskmix.advise._look import Finding, FindingKind, look_at
from taskmix.advise._prices import measure_prices
from taskmix.advise._probe import probe_of
from taskmix.advise._race import Race, Standing, run_race
from taskmix.advise._scores import Entry

__all__ = [
    "Advice",
    "AdviseOptions",
    "Adviser",
    "Answer",
    "Budget",
    "Candidate",
    "Entry",
    "Finding",
    "FindingKind",
    "News",
    "Part",
    "Prices",
    "Purse",
    "Race",
    "Standing",
    "advice_document",
    "answer",
    "look_at",
    "measure_prices",
    "plan_of",
    "probe_of",
    "run_race",
]
