r"""Smooth Tchebycheff: as Tchebycheff, but tasks close to the worst get their share.

    Lin, Zhang, Yang, Liu, Wang and Zhang, "Smooth Tchebycheff Scalarization for Multi-Objective
    Optimization", ICML 2024, Eq. 9.

The model descends $\mu \log \sum_i \exp(\lambda_i (f_i - z_i) / \mu)$, whose gradient weighs task
$i$ by $\lambda_i\,\mathrm{softmax}_i(\lambda (f - z) / \mu)$.

Symbols: $\mu$ is `smoothness`, $\lambda$ is `weights`, $z$ is `ideal`, $f_i$ is the loss of task
$i$, or, with `logarithm`, its logarithm, as in the authors' multitask code.

Cost: that of the plain step; no state.

Departures: weights are scaled to sum to T; `unscaled` gives the paper's. Where no `weights` are
given every $\lambda_i$ is $1/T$, a point of the paper's simplex: note that `smoothness` acts on
$\lambda f$, and so acts T times stronger than on the losses. The paper tries 0.01, 0.1, 0.5 and 1.

Scale: larger losses move the weights further; with `logarithm` and equal `weights` a common factor
cancels. Shift: a common one cancels with equal `weights` and without `logarithm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import precise, softmax_of_present, sum_to_tasks
from taskmix.weighting._tchebycheff import check_preferences, distances
from taskmix.weighting._weighting import HasOwnScale, Needs, registered


@registered("stch", scale="counts", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class SmoothTchebycheff(HasOwnScale[None]):
    """Weights from a softmax of the losses; no state.

    >>> losses = torch.tensor([1.0, 3.0])
    >>> [round(each, 4) for each in SmoothTchebycheff(smoothness=1.0).weigh(None, losses).tolist()]
    [0.5379, 1.4621]
    >>> [round(each, 4) for each in SmoothTchebycheff(smoothness=0.01).weigh(None, losses).tolist()]
    [0.0, 2.0]
    """

    needs: ClassVar[Needs] = Needs.LOSSES

    smoothness: float = 0.1
    weights: tuple[float, ...] | None = None  # above 0, one a task; 1/T where none are given
    ideal: tuple[float, ...] | None = None  # one a task; 0 where none are given
    logarithm: bool = False  # of the losses, so that their units do not count; losses above 0

    def __post_init__(self) -> None:
        check_preferences(self.weights)
        if self.smoothness <= 0:
            raise OptionError(f"`smoothness` should be above 0. Found {self.smoothness}.")

    def init(self, losses: Tensor) -> None:
        distances(losses, self.weights, self.ideal)

    def weigh(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        return sum_to_tasks(self._gradient(losses, present), present).to(losses.dtype)

    def unscaled(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        """The gradient of the smooth maximum in the losses."""
        return self._gradient(losses, present).to(losses.dtype)

    def update(self, state: None, losses: Tensor, present: Tensor | None = None) -> None:
        return None

    def _gradient(self, losses: Tensor, present: Tensor | None) -> Tensor:
        values = precise(losses)
        if self.logarithm:
            positive = torch.where(values == 0, torch.finfo(values.dtype).tiny, values)
            values = positive.log()
        scores = distances(values, self.weights, self.ideal)
        equal = 1 / len(losses) if self.weights is None else 1.0
        shares = softmax_of_present(scores * (equal / self.smoothness), present) * equal
        if self.weights is not None:
            shares = shares * values.new_tensor(self.weights)
        if self.logarithm:
            shares = shares / positive
            if present is not None:
                shares = torch.where(present.to(values.device), shares, 0.0)
        return shares
