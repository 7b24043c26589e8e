"""From tasks to a plan with evidence: `advise` from a folder or data, `advise_on` from a run."""

from taskmix.adviser._advice import AdviseOptions, News
from taskmix.adviser._advise import ASK_AGAIN, IN_PYTHON, MODEL, TRAIN, advise, advise_on
from taskmix.adviser._advised import Advised
from taskmix.adviser._blend import Blends, fit_blends
from taskmix.adviser._budget import Budget, parse_time, typed_time
from taskmix.adviser._candidates import baselines
from taskmix.adviser._judge import Race, Standing, rank_candidates
from taskmix.adviser._members import BlendMember
from taskmix.adviser._run_length import cheap_evaluations, useful_workers
from taskmix.adviser._scores import mean_comparable

__all__ = [
    "ASK_AGAIN",
    "IN_PYTHON",
    "MODEL",
    "TRAIN",
    "AdviseOptions",
    "Advised",
    "BlendMember",
    "Blends",
    "Budget",
    "News",
    "Race",
    "Standing",
    "advise",
    "advise_on",
    "baselines",
    "cheap_evaluations",
    "fit_blends",
    "mean_comparable",
    "parse_time",
    "rank_candidates",
    "typed_time",
    "useful_workers",
]

from typing import TYPE_CHECKING

if not TYPE_CHECKING:
    from taskmix._gone import refuse_gone_names

    __getattr__ = refuse_gone_names(__name__)
