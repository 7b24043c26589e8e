"""Which tasks to train together: a partition of largest worth.

`_worth` says what a partition is worth and what limits it. `_exact` finds the best of a dozen
tasks; `_greedy` and `_spectral` search where there are more, and `_best` takes whichever fits.
"""

from taskmix.transfer._grouping._best import best_grouping
from taskmix.transfer._grouping._exact import group_exactly
from taskmix.transfer._grouping._greedy import group_greedily
from taskmix.transfer._grouping._spectral import group_spectrally
from taskmix.transfer._grouping._worth import Grouping, GroupLimits

__all__ = [
    "GroupLimits",
    "Grouping",
    "best_grouping",
    "group_exactly",
    "group_greedily",
    "group_spectrally",
]
