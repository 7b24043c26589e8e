"""From tasks to a plan with evidence: `advise` from a folder or data, `advise_on` from a run."""

from taskmix.adviser._advise import ASK_AGAIN, MODEL, advise, advise_on
from taskmix.adviser._advised import Advised
from taskmix.adviser._adviser import AdviseOptions, News
from taskmix.adviser._alone import advising_alone
from taskmix.adviser._budget import Budget, typed_time
from taskmix.adviser._candidates import baselines, cheap_evaluations
from taskmix.adviser._guess import GuessedMixture, guess_mixtures
from taskmix.adviser._scores import mean_comparable

__all__ = [
    "ASK_AGAIN",
    "MODEL",
    "AdviseOptions",
    "Advised",
    "Budget",
    "GuessedMixture",
    "News",
    "advise",
    "advise_on",
    "advising_alone",
    "baselines",
    "cheap_evaluations",
    "guess_mixtures",
    "mean_comparable",
    "typed_time",
]
