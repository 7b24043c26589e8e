"""What policies whose probabilities never change have in common: a state of shares, drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from taskmix.errors import OptionError, ShapeError
from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes, draw


@dataclass(frozen=True, slots=True)
class SharesState:
    shares: Probabilities  # [task]


class Unchanging:
    """Draws from the shares that `init` settled, and learns nothing.

    >>> policy = Uniform()
    >>> state = policy.init(np.array([5, 5]))
    >>> policy.update(state, Outcome(Choice(0, 0.5), loss=1.0)) is state
    True
    """

    __slots__ = ()

    def probabilities(self, state: SharesState) -> Probabilities:
        return state.shares

    def select(self, state: SharesState, generator: np.random.Generator) -> Choice:
        return draw(state.shares, generator)

    def update(self, state: SharesState, outcome: Outcome) -> SharesState:
        return state


def check_limit(limit: int | None) -> None:
    """Raises where a limit is not a number of rows."""
    if limit is not None and not (type(limit) is int and limit >= 1):
        raise OptionError(
            f"`limit` should be a whole number of rows, 1 or more. Found {limit!r}. Without one "
            "`Tempered` has no limit, and `Capped` the median of the sizes."
        )


def checked_sizes(sizes: ArrayLike) -> Sizes:
    """`sizes` [task] as whole numbers, at least one task and at least one row in each."""
    counts = np.asarray(sizes)
    if counts.ndim != 1 or len(counts) == 0:
        raise ShapeError(
            f"`sizes` should have one number per task. Found an array of shape {counts.shape}."
        )
    if np.any(counts < 1):
        raise ShapeError(
            "Every task should have at least one row to train on. Found a size of "
            f"{counts.min()} for task {int(counts.argmin())}. Leave that task out."
        )
    return counts.astype(np.int64)
