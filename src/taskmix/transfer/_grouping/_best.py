"""The best groups that can be had: exact where tasks are few, else the better of two searches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.transfer._grouping._exact import MOST_TASKS, group_exactly
from taskmix.transfer._grouping._greedy import group_greedily
from taskmix.transfer._grouping._spectral import group_spectrally
from taskmix.transfer._grouping._worth import Grouping, GroupLimits


def best_grouping(gains: NDArray[np.float64], limits: GroupLimits | None = None) -> Grouping:
    """The groups of largest worth: exact for a dozen tasks, else the better of two searches."""
    if len(gains) <= MOST_TASKS:
        return group_exactly(gains, limits)
    found = [
        group_greedily(gains, limits),
        group_spectrally(gains, limits, generator=np.random.default_rng(0)),
    ]
    return max(found, key=lambda grouping: grouping.value)
