r"""IMTL-L: every task's loss is scaled so that all count the same.

    Liu, Li, Kuang, Xue, Chen, Yang, Liao and Zhang, "Towards Impartial Multi-task Learning",
    ICLR 2021, Section 3.2 and Algorithm 1.

Each task has a learned scale $s_i$ (`log_scale`), and the total $\sum_i e^{s_i} L_i - s_i$ is
descended in the model and in $s$. Where $s$ has settled, $e^{s_i} = 1 / L_i$: every scaled loss is
1.

Cost: that of the plain step, and 4T numbers of state.

Departures: weights $e^{s_i}$ are scaled to sum to T; `unscaled` gives the paper's. $s$ takes its
own Adam steps of `step_size`, away from the model's weight decay; the paper hands it to the
model's optimiser. The gradients' counterpart is `IMTLG`.

Scale: twice the loss has, in the end, half the weight. Shift: changes the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._adam import AdamState, adam_init, adam_step
from taskmix.weighting._scale import softmax_shares, weights_of
from taskmix.weighting._weighting import HasOwnScale, Needs, registered

LARGEST_EXPONENT = 700.0  # its power of e is still a float64


@dataclass(frozen=True)
class IMTLLState:
    log_scale: Tensor  # [task], float64 on the CPU
    adam: AdamState


@registered("imtl-l", scale="counts", shift="counts")
@dataclass(frozen=True, kw_only=True)
class IMTLL(HasOwnScale[IMTLLState]):
    """Weights proportional to learned scales exp(s).

    >>> method, losses = IMTLL(), torch.tensor([0.5, 4.0])
    >>> state = method.update(method.init(losses), losses)  # Adam's first step is one `step_size` long
    >>> [round(scale, 4) for scale in state.log_scale.tolist()]
    [0.025, -0.025]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.HOST

    step_size: float = 0.025

    def __post_init__(self) -> None:
        if self.step_size <= 0:
            raise OptionError(f"`step_size` should be above 0. Found {self.step_size}.")

    def init(self, losses: Tensor) -> IMTLLState:
        start = torch.zeros(len(losses), dtype=torch.float64)
        return IMTLLState(start, adam_init(len(losses)))

    def weigh(self, state: IMTLLState, losses: Tensor, present: Tensor | None = None) -> Tensor:
        return weights_of(softmax_shares(state.log_scale.tolist()), losses, present)

    def unscaled(self, state: IMTLLState, losses: Tensor, present: Tensor | None = None) -> Tensor:
        """The paper's own weights, whose sum moves with the losses."""
        weights = torch.exp(state.log_scale).to(losses)
        return weights if present is None else weights * present.to(weights)

    def update(
        self, state: IMTLLState, losses: Tensor, present: Tensor | None = None
    ) -> IMTLLState:
        pairs = zip(state.log_scale.tolist(), losses.tolist(), strict=True)
        gradient = [math.exp(min(scale, LARGEST_EXPONENT)) * loss - 1 for scale, loss in pairs]
        log_scale, adam = adam_step(
            state.log_scale, gradient, state.adam, step_size=self.step_size, present=present
        )
        return IMTLLState(log_scale, adam)
