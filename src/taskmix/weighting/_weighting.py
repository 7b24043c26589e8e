"""The contract of a loss weighting: how much each task's loss counts in a step over all tasks.

Options are frozen, state is explicit and made of tensors. Weights sum to the number of tasks, so that
the effective step size does not change with the method.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from torch import Tensor

StateT = TypeVar("StateT")


class LossWeighting(Protocol[StateT]):
    """Weights from the values of the losses alone."""

    def init(self, losses: Tensor) -> StateT:
        """The state before the first step; `losses` [task] gives number, type and device."""
        ...

    def weigh(self, state: StateT, losses: Tensor) -> Tensor:
        """The weight of each task [task], without gradient; `losses` is detached."""
        ...

    def update(self, state: StateT, losses: Tensor) -> StateT:
        """The state after a step with these losses."""
        ...


AnyLossWeighting = LossWeighting[Any]
