"""From tasks to a plan with evidence: `advise` from a folder or data, `advise_on` from a run."""

from taskmix.adviser._advise import ASK_AGAIN, MODEL, advise, advise_on
from taskmix.adviser._advised import Advised
from taskmix.adviser._adviser import Advice, AdviseOptions, Adviser, News
from taskmix.adviser._alone import advising_alone
from taskmix.adviser._answer import Answer, answer, best_runs, plan_of
from taskmix.adviser._budget import Budget, PricedBudget, Prices, Timer, typed_time
from taskmix.adviser._candidates import baselines, cheap_evaluations
from taskmix.adviser._document import advice_document
from taskmix.adviser._history import History
from taskmix.adviser._look import Finding, FindingKind, look_at
from taskmix.adviser._outlook import outlook
from taskmix.adviser._prices import measure_prices
from taskmix.adviser._probe import probe_of
from taskmix.adviser._race import Race, Standing, run_race
from taskmix.adviser._scores import Entry, mean_comparable

__all__ = [
    "ASK_AGAIN",
    "MODEL",
    "Advice",
    "AdviseOptions",
    "Advised",
    "Adviser",
    "Answer",
    "Budget",
    "Entry",
    "Finding",
    "FindingKind",
    "History",
    "News",
    "PricedBudget",
    "Prices",
    "Race",
    "Standing",
    "Timer",
    "advice_document",
    "advise",
    "advise_on",
    "advising_alone",
    "answer",
    "baselines",
    "best_runs",
    "cheap_evaluations",
    "look_at",
    "mean_comparable",
    "measure_prices",
    "outlook",
    "plan_of",
    "probe_of",
    "run_race",
    "typed_time",
]
