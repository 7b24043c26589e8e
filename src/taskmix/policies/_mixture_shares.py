"""Mixture shares: those of a point of the simplex, edges and corners included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from taskmix.policies._fixed import Fixed


@dataclass(frozen=True, slots=True)
class MixtureShares(Fixed):
    """As `Fixed`, where a share may be zero: that task is scored and never trained on.

    Steps recorded under it say nothing of what a policy that does draw such a task would have met.

    >>> policy = MixtureShares((0.0, 1.0))
    >>> policy.select(policy.init([100, 3]), np.random.default_rng(0))
    Choice(task=1, probability=1.0)
    """

    full_support: ClassVar[bool] = False
