"""What to run: first designs, then runs by what they are expected to tell, until it is enough."""

from taskmix.mixtures._designing._first import FirstDesign, first_mixtures
from taskmix.mixtures._designing._next import NextRuns, next_mixtures
from taskmix.mixtures._designing._regret import ExpectedRegret, estimate_regret
from taskmix.mixtures._designing._search import MixtureSearch, SearchRound, search_mixtures

__all__ = [
    "ExpectedRegret",
    "FirstDesign",
    "MixtureSearch",
    "NextRuns",
    "SearchRound",
    "estimate_regret",
    "first_mixtures",
    "next_mixtures",
    "search_mixtures",
]
