r"""Dynamic weight average: a task whose loss falls slowly gets more weight.

    Liu, Johns and Davison, "End-to-End Multi-Task Learning with Attention", CVPR 2019, Eq. 7.

$w_k(t-1) = L_k(t-1) / L_k(t-2)$ is the rate at which the mean loss of task $k$ changed over the
last two epochs, and $\lambda_k(t) = K\, \mathrm{softmax}_k(w(t-1) / T)$ its weight.

Symbols: $K$ is `len(losses)`, $T$ is `temperature`, $w_k$ is `latest / previous`.

Cost: that of the plain step, and 4T numbers of state.

Decisions: an epoch ends when the loop says so (`end_epoch`), or after `steps_per_epoch` steps.
Weights are 1 until two epochs are known, as in the paper. A task without a loss in a whole epoch
keeps its rate; one whose loss was 0 counts as having kept it.

Scale: none. Shift: changes the weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.weighting._scale import softmax_shares, weights_of
from taskmix.weighting._weighting import CountsEpochs, Needs, registered


@dataclass(frozen=True)
class DynamicWeightAverageState:
    total: Tensor  # [task], of the losses in this epoch; all are float64 on the CPU
    count: Tensor  # [task], of the steps in which the task had one
    latest: Tensor  # [task], the mean losses of the last epoch; 1 while unknown
    previous: Tensor  # [task], those of the epoch before; 1 while unknown
    epochs: Tensor  # [task], how many of the two are known
    steps: Tensor  # in this epoch


@registered("dwa", scale="ignored", shift="counts")
@dataclass(frozen=True, kw_only=True)
class DynamicWeightAverage(CountsEpochs[DynamicWeightAverageState]):
    """Weights that sum to the number of tasks.

    >>> method = DynamicWeightAverage(steps_per_epoch=1)
    >>> state = method.init(torch.ones(2))
    >>> for losses in ([1.0, 1.0], [0.5, 0.9]):
    ...     state = method.update(state, torch.tensor(losses))
    >>> [round(each, 4) for each in method.weigh(state, torch.ones(2)).tolist()]  # 2 softmax(0.25, 0.45)
    [0.9003, 1.0997]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.HOST | Needs.EPOCH

    temperature: float = 2.0  # the paper's value; a larger one is more uniform
    steps_per_epoch: int | None = None  # for a loop that does not tell when an epoch ends

    def __post_init__(self) -> None:
        if self.temperature <= 0 or (self.steps_per_epoch is not None and self.steps_per_epoch < 1):
            raise OptionError(
                "`temperature` should be above 0 and `steps_per_epoch` 1 or more. Found "
                f"{self.temperature} and {self.steps_per_epoch}."
            )

    def init(self, losses: Tensor) -> DynamicWeightAverageState:
        zeros = torch.zeros(len(losses), dtype=torch.float64)
        ones = torch.ones_like(zeros)
        steps = torch.zeros((), dtype=torch.int64)
        return DynamicWeightAverageState(zeros, zeros, ones, ones, zeros, steps)

    def weigh(
        self, state: DynamicWeightAverageState, losses: Tensor, present: Tensor | None = None
    ) -> Tensor:
        known = zip(
            state.epochs.tolist(), state.latest.tolist(), state.previous.tolist(), strict=True
        )
        rates = [new / old if count >= 2 and old != 0 else 1.0 for count, new, old in known]
        shares = softmax_shares([rate / self.temperature for rate in rates])
        return weights_of(shares, losses, present)

    def update(
        self, state: DynamicWeightAverageState, losses: Tensor, present: Tensor | None = None
    ) -> DynamicWeightAverageState:
        values = losses.detach().cpu()
        state = replace(
            state,
            total=state.total + (values if present is None else values * present),
            count=state.count + (1 if present is None else present),
            steps=state.steps + 1,
        )
        if self.steps_per_epoch is not None and int(state.steps) >= self.steps_per_epoch:
            return self.end_epoch(state)
        return state

    def end_epoch(self, state: DynamicWeightAverageState) -> DynamicWeightAverageState:
        """The state at the beginning of the next epoch."""
        seen = state.count > 0
        return DynamicWeightAverageState(
            total=torch.zeros_like(state.total),
            count=torch.zeros_like(state.count),
            latest=torch.where(seen, state.total / state.count, state.latest),
            previous=torch.where(seen, state.latest, state.previous),
            epochs=torch.where(seen, (state.epochs + 1).clamp(max=2), state.epochs),
            steps=torch.zeros_like(state.steps),
        )
