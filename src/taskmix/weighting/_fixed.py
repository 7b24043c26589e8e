"""Fixed weights: those the user gives, scaled to sum to the number of tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from taskmix.errors import OptionError, ShapeError


@dataclass(frozen=True, kw_only=True)
class FixedWeights:
    """One weight a task, in the order of the tasks; only their ratios matter."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        finite = all(math.isfinite(weight) and weight >= 0 for weight in self.weights)
        if not finite or not any(self.weights):
            raise OptionError(
                "`weights` should be numbers from 0 up, not all 0. Found "
                f"{self.weights}. Give one weight for each task."
            )

    def init(self, losses: Tensor) -> None:
        if len(losses) != len(self.weights):
            raise ShapeError(
                f"`weights` should have one number for each task. Found {len(self.weights)} weights "
                f"and {len(losses)} tasks. Give them in the order of the tasks."
            )

    def weigh(self, state: None, losses: Tensor) -> Tensor:
        scale = len(self.weights) / sum(self.weights)
        return losses.new_tensor([weight * scale for weight in self.weights])

    def update(self, state: None, losses: Tensor) -> None:
        return None
