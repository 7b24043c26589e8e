r"""Tempered: in proportion to size, drawn towards the uniform by a temperature.

    Arivazhagan et al., "Massively Multilingual Neural Machine Translation in the Wild", 2019,
    Section 4: in proportion to $p_k^{1/T}$, where $p_k$ is the share of size.

The paper's $T$ is `temperature` (5 there); $p_k$ is `sizes[k]` over their sum.

With a `limit` no task counts for more rows than that: T5's "temperature-scaled mixing" (Raffel et al.,
JMLR 21, 2020, Section 3.5.2), whose rates $\min(e_m, K) / \sum_n \min(e_n, K)$ are raised to $1/T$. Its
$K$ is `limit`, 2^21 there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taskmix.errors import OptionError
from taskmix.numerics import softmax
from taskmix.policies._policy import Sizes, typed_as
from taskmix.policies._shares import SharesState, Unchanging, check_limit, checked_sizes
from taskmix.records import later_option


@typed_as("tempered", "temperature", "limit")
@dataclass(frozen=True, slots=True, kw_only=True)
class Tempered(Unchanging):
    """In proportion to size^(1/τ): τ = 1 is by size, τ → ∞ is uniform.

    >>> policy = Tempered(temperature=2)
    >>> policy.probabilities(policy.init(np.array([900, 100]))).round(6).tolist()  # 30 to 10
    [0.75, 0.25]
    >>> policy = Tempered(temperature=2, limit=400)
    >>> policy.probabilities(policy.init(np.array([90_000, 100]))).round(6).tolist()  # 20 to 10
    [0.666667, 0.333333]
    """

    temperature: float = 2.0
    limit: int | None = later_option(None)  # rows that a task counts for at most

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise OptionError(
                f"`temperature` should be above zero. Found {self.temperature}. 1 is in "
                "proportion to size, 5 nearly uniform."
            )

        check_limit(self.limit)

    def init(self, sizes: Sizes) -> SharesState:
        counts = checked_sizes(sizes)
        if self.limit is not None:
            counts = np.minimum(counts, self.limit)
        # In log space, since a size to the power of 1/τ overflows for a small τ.
        shares = softmax(np.log(counts) / self.temperature)
        # A share too small for a float would be drawn never, and recorded as impossible.
        return SharesState(np.maximum(shares, np.finfo(np.float64).tiny))
