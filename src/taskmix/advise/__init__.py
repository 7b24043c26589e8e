"""From tasks to a plan with evidence."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from taskmix.advise._adviser import Advice, AdviseOptions, Adviser, News
from taskmix.advise._alone import advising_alone
from taskmix.advise._answer import Answer, answer, best_runs, plan_of
from taskmix.advise._budget import Budget, Prices, Purse, Timer, typed_time
from taskmix.advise._document import advice_document, load_advice, save_advice
from taskmix.advise._history import History, Milestone
from taskmix.advise._look import Finding, FindingKind, look_at
from taskmix.advise._outlook import Outlook, outlook
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
    "Entry",
    "Finding",
    "FindingKind",
    "History",
    "Milestone",
    "News",
    "Outlook",
    "Prices",
    "Purse",
    "Race",
    "Standing",
    "Timer",
    "advice_document",
    "advising_alone",
    "answer",
    "best_runs",
    "load_advice",
    "look_at",
    "measure_prices",
    "outlook",
    "plan_of",
    "probe_of",
    "run_race",
    "save_advice",
    "typed_time",
]


class _Callable(ModuleType):
    """A package that can be called: `taskmix.advise(...)` is the function of `taskmix.own`.

    That package lies above this one, since it writes the report, so its name is looked up when called.
    """

    def __call__(self, *words: Any, **options: Any) -> Any:
        return import_module("taskmix.own").advise(*words, **options)


sys.modules[__name__].__class__ = _Callable
