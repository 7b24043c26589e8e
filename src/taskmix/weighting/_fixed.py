"""Fixed weights: those the user gives, scaled to sum to the number of tasks.

Cost: nothing. Scale and shift of the losses: no effect on the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import per_task, sum_to_tasks
from taskmix.weighting._weighting import Needs, registered


@registered("fixed", scale="ignored", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class FixedWeights:
    """One weight a task, in the order of the tasks; only their ratios matter.

    >>> method = FixedWeights(weights=(1, 2, 1))
    >>> method.weigh(None, torch.tensor([2.0, 5.0, 9.0])).tolist()
    [0.75, 1.5, 0.75]
    """

    needs: ClassVar[Needs] = Needs.LOSSES

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        finite = all(math.isfinite(weight) and weight >= 0 for weight in self.weights)
        if not finite or not any(self.weights):
            raise OptionError(
                "`weights` should be numbers from 0 up, not all 0. Found "
                f"{self.weights}. Give one weight for each task."
            )

    def init(self, losses: Tensor) -> None:
        per_task(self.weights, losses, name="weights")

    def weigh(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        weights = per_task(self.weights, losses, name="weights")
        return sum_to_tasks(weights, present).to(losses.dtype)

    def update(self, state: None, losses: Tensor, present: Tensor | None = None) -> None:
        return None
