r"""Group DRO: exponential weights on the losses, towards the worst task.

    Sagawa, Koh, Hashimoto and Liang, "Distributionally Robust Neural Networks for Group Shifts",
    ICLR 2020, Algorithm 1.

The model descends $\sum_g q_g L_g$ while $q$ climbs it: $q_g \leftarrow q_g \exp(\eta_q L_g)$,
scaled to sum to one, before each of the model's steps. It is BanditMTL without the ball, and with
the new $q$ used in the same step.

Symbols: $q$ is the softmax of `log_weights`, $\eta_q$ is `step_size`.

Cost: that of the plain step, and T numbers of state.

Departures: weights are $T q_g$. The paper draws one group a step and updates that alone; here all
tasks that have a loss in the step move at once.

Scale: larger losses move the weights further. Shift: none, a constant cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import (
    LOG_FLOOR,
    keep_absent,
    precise,
    softmax_of_present,
    times_tasks,
)
from taskmix.weighting._weighting import Needs, registered


@dataclass(frozen=True)
class GroupDROState:
    log_weights: Tensor  # [task]


@registered("group-dro", scale="counts", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class GroupDRO:
    """Weights T·q, with q by exponentiated gradient ascent.

    >>> method, losses = GroupDRO(step_size=1.0), torch.log(torch.tensor([1.0, 3.0]))
    >>> weights = method.weigh(method.init(losses), losses)
    >>> [round(weight, 4) for weight in weights.tolist()]  # 2 q, as 1 to 3
    [0.5, 1.5]
    """

    needs: ClassVar[Needs] = Needs.LOSSES

    step_size: float = 0.01  # the paper's value

    def __post_init__(self) -> None:
        if self.step_size <= 0:
            raise OptionError(f"`step_size` should be above 0. Found {self.step_size}.")

    def init(self, losses: Tensor) -> GroupDROState:
        return GroupDROState(torch.full_like(precise(losses), -math.log(len(losses))))

    def weigh(self, state: GroupDROState, losses: Tensor, present: Tensor | None = None) -> Tensor:
        log_weights = self.update(state, losses, present).log_weights
        shares = softmax_of_present(log_weights, present)
        return times_tasks(shares, present).to(losses.dtype)

    def update(
        self, state: GroupDROState, losses: Tensor, present: Tensor | None = None
    ) -> GroupDROState:
        climbed = state.log_weights + self.step_size * precise(losses)
        climbed = keep_absent(climbed, state.log_weights, present)
        return GroupDROState(torch.log_softmax(climbed, dim=0).clamp(min=LOG_FLOOR))
