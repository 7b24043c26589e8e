r"""Fixed: probabilities that were decided before the run, by hand or learned from earlier logs.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 12.

The paper's $\omega_k$ is `logits[k]` of `from_logits`, its $\pi^c_\omega$ is `shares`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from taskmix.errors import OptionError, ShapeError
from taskmix.numerics import as_distribution, softmax
from taskmix.policies._policy import Sizes, typed_as
from taskmix.policies._shares import SharesState, Unchanging, checked_sizes


@typed_as("fixed", "shares")
@dataclass(frozen=True, slots=True)
class Fixed(Unchanging):
    """The given share for each task, in the order of the tasks; none may be zero.

    >>> policy = Fixed((0.2, 0.8))
    >>> policy.probabilities(policy.init(np.array([100, 3]))).tolist()
    [0.2, 0.8]
    >>> Fixed.from_logits([0.0, 0.0]).shares
    (0.5, 0.5)
    """

    shares: Sequence[float]
    full_support: ClassVar[bool] = True  # whether every task has to be drawn at times

    def __post_init__(self) -> None:
        shares = as_distribution(self.shares, name="shares", full_support=self.full_support)
        if shares.ndim != 1:
            raise ShapeError(
                f"`shares` should have one number per task. Found an array of shape {shares.shape}."
            )
        object.__setattr__(self, "shares", tuple(float(share) for share in shares))

    @classmethod
    def from_logits(cls, logits: ArrayLike) -> Fixed:
        """The softmax policy with these `logits` [task]."""
        values = np.asarray(logits, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise OptionError(f"`logits` should be finite. Found {values.tolist()}.")
        return cls(softmax(values).tolist())

    def init(self, sizes: Sizes) -> SharesState:
        count = len(checked_sizes(sizes))
        if count != len(self.shares):
            raise ShapeError(
                f"`shares` should have one number per task. Found {len(self.shares)} for "
                f"{count} tasks."
            )
        return SharesState(np.array(self.shares))


@dataclass(frozen=True, slots=True)
class MixtureShares(Fixed):
    """As `Fixed`, where a share may be zero: that task is scored and never trained on.

    Steps recorded under it say nothing of what a policy that does draw such a task would have met.

    >>> policy = MixtureShares((0.0, 1.0))
    >>> policy.select(policy.init([100, 3]), np.random.default_rng(0))
    Choice(task=1, probability=1.0)
    """

    full_support: ClassVar[bool] = False
