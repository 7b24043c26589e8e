r"""ExcessMTL: weight goes to the tasks that are far from converged, whatever their noise.

    He, Zhou, Zhang, Yun, Xu, Zeng, Chilimbi and Zhao, "Robust Multi-Task Learning with Excess
    Risks", ICML 2024, Eqs. 6, 7 and 9 and Algorithm 1.

The excess risk of task $i$ is estimated by $E_i = g_i^\top H_i^{-1} g_i$ with the diagonal $H_i =
\sqrt{\sum_\tau g_i(\tau)^2}$ of all gradients so far (as AdaGrad), relative to the first such
estimate; then $\alpha_i \leftarrow \alpha_i \exp(\eta_\alpha E_i / E_i(0))$, scaled to sum to one.

Symbols: $\eta_\alpha$ is `step_size`, $\sum g^2$ is `squares`, $E_i(0)$ is `baseline`, $\log
\alpha$ is `log_weights`.

Cost: as `MGDA` for passes; memory for T gradients and for T × P sums of squares that stay between
steps.

Departures and decisions: weights are $T \alpha_i$. The first `warm_up` steps of a task give its
baseline, their mean, and do not move the weights (the paper collects it over three epochs); the
common code starts from one raw estimate, after which the weights are nearly all on one task. The
sums of squares of a task without a loss stay as they are.

Scale: none, since estimates are relative to the first. Shift: none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import LOG_FLOOR
from taskmix.weighting._weighting import Balance, Needs, registered

LARGEST_GRADIENT = 1e17  # sums of its square are still a float32


@dataclass(frozen=True)
class ExcessMTLState:
    log_weights: Tensor  # [task], float64 on the CPU
    baseline: Tensor  # [task], the sum of the first estimates
    count: Tensor  # [task], of the estimates so far
    squares: Tensor  # [task, parameter], beside the gradients; of no size before the first step


@registered("excess", scale="ignored", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class ExcessMTL:
    """Weights T·alpha, by exponentiated gradient on the excess risks.

    >>> method, losses = ExcessMTL(), torch.tensor([1.0, 1.0])
    >>> gradients = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> first = method.balance(method.init(losses), losses, gradients)
    >>> second = method.balance(first.state, losses, gradients * torch.tensor([[1.0], [0.5]]))
    >>> [[round(weight, 4) for weight in each.weights.tolist()] for each in (first, second)]
    [[1.0, 1.0], [1.0024, 0.9976]]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.GRADIENTS

    step_size: float = 0.01
    warm_up: int = 1  # steps

    def __post_init__(self) -> None:
        if self.step_size <= 0 or self.warm_up < 1:
            raise OptionError(
                "`step_size` should be above 0 and `warm_up` 1 or more. Found "
                f"{self.step_size} and {self.warm_up}."
            )

    def init(self, losses: Tensor) -> ExcessMTLState:
        zeros = torch.zeros(len(losses), dtype=torch.float64)
        return ExcessMTLState(
            zeros - math.log(len(losses)), zeros, zeros, torch.zeros(len(losses), 0)
        )

    def balance(
        self,
        state: ExcessMTLState,
        losses: Tensor,
        gradients: Tensor,
        tasks: Tensor | None = None,
    ) -> Balance[ExcessMTLState]:
        places = torch.arange(len(losses)) if tasks is None else tasks.cpu()
        kind = torch.promote_types(gradients.dtype, torch.float32)
        squares = torch.zeros(
            len(state.count), gradients.shape[1], dtype=kind, device=gradients.device
        )
        if state.squares.shape[1]:
            squares.copy_(state.squares)
        found = torch.empty(len(places), dtype=torch.float64, device=gradients.device)
        for row, place in enumerate(places.tolist()):  # one row at a time: P numbers, not T × P
            square = gradients[row].to(kind).clamp(-LARGEST_GRADIENT, LARGEST_GRADIENT) ** 2
            squares[place] += square
            found[row] = (square / (squares[place] + 1e-7).sqrt()).sum()
        estimates = found.cpu()

        count = state.count.clone()
        count[places] += 1
        warm = count[places] > self.warm_up
        baseline = state.baseline.clone()
        baseline[places] += torch.where(warm, 0.0, estimates)
        relative = estimates * self.warm_up / baseline[places].clamp(min=1e-300)
        log_weights = state.log_weights.clone()
        log_weights[places] += self.step_size * torch.where(warm, relative, 0.0).clamp(max=1e6)
        log_weights = torch.log_softmax(log_weights, dim=0).clamp(min=LOG_FLOOR)
        weights = torch.softmax(log_weights[places], dim=0) * len(places)
        return Balance(weights, ExcessMTLState(log_weights, baseline, count, squares))
