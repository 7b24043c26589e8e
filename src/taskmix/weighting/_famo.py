r"""FAMO: all losses fall at the same rate, without any task's own gradient.

    Liu, Feng, Stone and Liu, "FAMO: Fast Adaptive Multitask Optimization", NeurIPS 2023,
    Eqs. 8 to 10 and Algorithm 1.

With $z = \mathrm{softmax}(\xi)$ and $b$ a lower bound of the losses the model steps along $c
\sum_i \frac{z_i}{\ell_i - b_i} \nabla \ell_i$, where $c$ makes the weights sum to one. After the
step the losses of the same batch are taken again, and $\xi$ moves against what each gained:
$\delta_i = \log(\ell_i^{before} - b_i) - \log(\ell_i^{after} - b_i)$, gradient
$J_{\mathrm{softmax}}^\top \delta$ with decay $\gamma$.

Symbols: $\xi$ is `logits`, $b$ is `lower_bounds`, the step on $\xi$ is `step_size`, $\gamma$ is
`decay`.

Cost: one backward pass and two forward passes, the second without a graph: call `after_step` with
the losses of the same batch after the optimiser's step (and the same dropout, if the noise
matters).

Departures: weights sum to T and not to one. $\gamma$ differs between the paper's tables (0.001 to
0.01) and its code; the default is 0.001. A loss at or below its bound counts as 1e-8 above it.
Every task has to have a loss in every step, since what one gains is measured against the others.

Scale: twice the loss has half the weight; how $\xi$ moves does not change. Shift: changes the
weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import mul
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._adam import AdamState, adam_init, adam_step
from taskmix.weighting._scale import per_task, precise, softmax_shares
from taskmix.weighting._weighting import LearnsAfterStep, Needs, registered

SMALLEST_EXCESS = 1e-8  # of a loss above its bound: 0 has no logarithm


@dataclass(frozen=True)
class FAMOState:
    logits: Tensor  # [task], float64 on the CPU
    adam: AdamState
    before: Tensor  # [task], the logarithms of the losses before the step, beside the losses


@registered("famo", scale="inverse", shift="counts")
@dataclass(frozen=True, kw_only=True)
class FAMO(LearnsAfterStep[FAMOState]):
    """Weights proportional to softmax_shares(logits) / (loss - bound).

    >>> method, losses = FAMO(), torch.tensor([1.0, 4.0])
    >>> state = method.update(method.init(losses), losses)
    >>> [round(weight, 4) for weight in method.weigh(state, losses).tolist()]  # as 1 to 1/4
    [1.6, 0.4]
    >>> state = method.after_step(state, torch.tensor([0.5, 4.0]))  # only the first has gained
    >>> [round(logit, 4) for logit in state.logits.tolist()]
    [-0.025, 0.025]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.LOSSES_AFTER | Needs.EVERY_TASK

    step_size: float = 0.025
    decay: float = 0.001
    lower_bounds: tuple[float, ...] | None = None  # one a task; 0 where none are given

    def __post_init__(self) -> None:
        if self.step_size <= 0 or self.decay < 0:
            raise OptionError(
                "`step_size` should be above 0 and `decay` at least 0. Found "
                f"{self.step_size} and {self.decay}."
            )

    def init(self, losses: Tensor) -> FAMOState:
        start = torch.zeros(len(losses), dtype=torch.float64)
        return FAMOState(start, adam_init(len(losses)), before=self._logarithms(losses))

    def weigh(self, state: FAMOState, losses: Tensor, present: Tensor | None = None) -> Tensor:
        # A softmax of logarithms: the quotient of a share and a tiny loss would overflow.
        above = self._logarithms(losses)
        shares = torch.softmax(state.logits.to(above) - above, dim=0)
        return (len(losses) * shares).to(losses.dtype)

    def update(self, state: FAMOState, losses: Tensor, present: Tensor | None = None) -> FAMOState:
        return replace(state, before=self._logarithms(losses))

    def after_step(self, state: FAMOState, losses: Tensor) -> FAMOState:
        """The state once the losses [task] of the same batch after the step are known."""
        gains: list[float] = (state.before - self._logarithms(losses)).tolist()
        logits: list[float] = state.logits.tolist()
        shares = softmax_shares(logits)
        mean = sum(map(mul, shares, gains))
        gradient = [
            share * (gain - mean) + self.decay * logit
            for share, gain, logit in zip(shares, gains, logits, strict=True)
        ]
        moved, adam = adam_step(state.logits, gradient, state.adam, step_size=self.step_size)
        return FAMOState(moved, adam, state.before)

    def _logarithms(self, losses: Tensor) -> Tensor:
        """Of how far the losses are above their bounds."""
        values = precise(losses)
        if self.lower_bounds is not None:
            values = values - per_task(self.lower_bounds, losses, name="lower_bounds")
        return values.clamp(min=SMALLEST_EXCESS).log()
