r"""Uniform: every task is as likely as any other.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 3.

The paper's $N$ is `len(sizes)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.policies._policy import Sizes, typed_as
from taskmix.policies._shares import SharesState, Unchanging, checked_sizes


@typed_as("uniform")
@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform(Unchanging):
    """One in N for each task, whatever its size: the strong baseline of the paper.

    >>> policy = Uniform()
    >>> state = policy.init(np.array([300, 100, 1, 1]))
    >>> policy.probabilities(state).tolist()
    [0.25, 0.25, 0.25, 0.25]
    >>> policy.select(state, np.random.default_rng(0))
    Choice(task=2, probability=0.25)
    """

    def init(self, sizes: Sizes) -> SharesState:
        count = len(checked_sizes(sizes))
        return SharesState(np.full(count, 1.0 / count))
