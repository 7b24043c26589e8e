r"""Size-proportional: a task is as likely as its share of all rows.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 4.

The paper's $|D^k|$ is `sizes[k]`.
"""

from __future__ import annotations

from dataclasses import dataclass

from taskmix.policies._policy import Sizes, typed_as
from taskmix.policies._shares import SharesState, Unchanging, checked_sizes


@typed_as("proportional")
@dataclass(frozen=True, slots=True, kw_only=True)
class SizeProportional(Unchanging):
    """Each row as likely as any other, so that small tasks are seldom seen.

    >>> policy = SizeProportional()
    >>> policy.probabilities(policy.init(np.array([300, 100]))).tolist()
    [0.75, 0.25]
    """

    def init(self, sizes: Sizes) -> SharesState:
        counts = checked_sizes(sizes)
        return SharesState(counts / counts.sum())
