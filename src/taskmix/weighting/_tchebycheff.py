r"""Tchebycheff: the task that is furthest from its ideal gets the whole step.

    Mao, Yun, Liu and Du, "Tchebycheff Procedure for Multi-task Text Classification", ACL 2020,
    Eq. 5; the scalarisation is Bowman's (1976).

The model descends $\max_i \lambda_i (L_i - z_i)$. Its gradient is that of the largest term.

Symbols: $\lambda$ is `weights`, $z$ is `ideal`, the losses one would be content with.

Cost: that of the plain step, most of which is for tasks whose weight is 0; no state.

Departures: the weight is scaled to sum to T, so the worst task counts T times; `unscaled` gives
$\lambda_i$. Tasks that are level share the step: the mean of their gradients is a subgradient too,
and does not depend on the tasks' order. The adversarial part of the paper is an architecture
(`taskmix.models`), not a weighting.

Scale: a common factor cancels, with `ideal` 0. Shift: a common one cancels, with equal `weights`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import per_task, precise, sum_to_tasks
from taskmix.weighting._weighting import HasOwnScale, Needs, registered


@registered("tchebycheff", scale="common cancels", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class Tchebycheff(HasOwnScale[None]):
    """All weight on the largest of `weights` * (losses - `ideal`); no state.

    >>> Tchebycheff().weigh(None, torch.tensor([1.0, 3.0, 2.0])).tolist()
    [0.0, 3.0, 0.0]
    >>> Tchebycheff(weights=(4.0, 1.0, 1.0)).weigh(None, torch.tensor([1.0, 3.0, 2.0])).tolist()
    [3.0, 0.0, 0.0]
    """

    needs: ClassVar[Needs] = Needs.LOSSES

    weights: tuple[float, ...] | None = None  # above 0, one a task; equal where none are given
    ideal: tuple[float, ...] | None = None  # one a task; 0 where none are given

    def __post_init__(self) -> None:
        check_preferences(self.weights)

    def init(self, losses: Tensor) -> None:
        distances(losses, self.weights, self.ideal)

    def weigh(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        return sum_to_tasks(self._worst(losses, present), None).to(losses.dtype) * (
            1.0 if present is None else present.to(losses).mean()
        )

    def unscaled(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        """The gradient of the largest term in the losses."""
        worst = self._worst(losses, present)
        if self.weights is not None:
            worst = worst * per_task(self.weights, losses, name="weights")
        return worst.to(losses.dtype)

    def update(self, state: None, losses: Tensor, present: Tensor | None = None) -> None:
        return None

    def _worst(self, losses: Tensor, present: Tensor | None) -> Tensor:
        """Shares [task] that sum to one; NaN where a loss is NaN."""
        scores = distances(losses, self.weights, self.ideal)
        if present is not None:
            scores = scores.masked_fill(~present.to(scores.device), -torch.inf)
        largest = scores.max()
        worst = torch.where(scores == largest, 1.0, 0.0 * largest).to(scores.dtype)
        return worst / worst.sum()


def distances(
    losses: Tensor, weights: tuple[float, ...] | None, ideal: tuple[float, ...] | None
) -> Tensor:
    """`weights` * (losses - `ideal`) [task], in float64."""
    values = precise(losses)
    if ideal is not None:
        values = values - per_task(ideal, losses, name="ideal")
    return values if weights is None else values * per_task(weights, losses, name="weights")


def check_preferences(weights: tuple[float, ...] | None) -> None:
    """Raises where a preference is not a number above 0."""
    if weights is not None and not all(math.isfinite(value) and value > 0 for value in weights):
        raise OptionError(f"`weights` should be numbers above 0. Found {weights}.")
