r"""Capped: in proportion to size, where no task counts for more rows than a limit.

    Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
    Transformer", JMLR 21, 2020, Section 3.5.2, "Examples-proportional mixing":
    $r_m = \min(e_m, K) / \sum_n \min(e_n, K)$.

The paper's $e_m$ is `sizes[m]`, its $K$ is `limit`. The paper tries limits from 2^16 to 2^21, which
suit its data; without one, the limit here is the median size, so that half of the tasks count in full.
With a temperature as well it is `Tempered(limit=...)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.policies._policy import Sizes, typed_as
from taskmix.policies._shares import SharesState, Unchanging, check_limit, checked_sizes


@typed_as("capped", "limit")
@dataclass(frozen=True, slots=True, kw_only=True)
class Capped(Unchanging):
    """In proportion to min(size, limit): a limit of 1 is uniform, one that nobody reaches is by size.

    >>> policy = Capped(limit=200)
    >>> policy.probabilities(policy.init(np.array([900, 200, 100]))).tolist()  # 200, 200, 100
    [0.4, 0.4, 0.2]
    """

    limit: int | None = None  # rows that a task counts for at most; None: the median of the sizes

    def __post_init__(self) -> None:
        check_limit(self.limit)

    def init(self, sizes: Sizes) -> SharesState:
        counts = checked_sizes(sizes)
        limit = float(np.median(counts)) if self.limit is None else self.limit
        capped = np.minimum(counts, limit)
        return SharesState(capped / capped.sum())
