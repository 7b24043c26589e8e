r"""Uncertainty weighting: a task counts the less, the noisier its targets are taken to be.

    Kendall, Gal and Cipolla, "Multi-Task Learning Using Uncertainty to Weigh Losses for Scene
    Geometry and Semantics", CVPR 2018, Eq. 7 (regression) and Eq. 10 (classification).

Each task has a noise $\sigma_i$, learned by descending the total

    regression:     $\frac{1}{2\sigma^2} L + \log\sigma$,
    classification: $\frac{1}{\sigma^2} L + \log\sigma$,

in $s = \log\sigma^2$ (`log_variance`), as the paper advises. Where $s$ has settled the weight is
$1/(2L)$ in both forms, and the total is negative once $L < 1/e$: that is no fault.

Cost: that of the plain step, and 4T numbers of state.

Departures and decisions:
- Weights are scaled to sum to T; `unscaled` gives the paper's. Since each $s$ follows its own loss
  alone, the scale changes the model's steps and not the method.
- $s$ takes its own Adam steps of `step_size` (0.025 is what Chen et al., "GradNorm", 2018, used
  for this method), without the model's weight decay, which would pull every $s$ to 0.
- `forms` says which form each task has; peers use the regression form for all.

Scale: twice the loss has, in the end, half the weight. Shift: changes the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from taskmix.errors import OptionError, ShapeError
from taskmix.weighting._adam import AdamState, adam_init, adam_step
from taskmix.weighting._scale import weights_of
from taskmix.weighting._weighting import HasOwnScale, Needs, registered

Form = Literal["classification", "regression"]
LARGEST_EXPONENT = 700.0  # its power of e is still a float64
FACTORS = {"classification": 1.0, "regression": 0.5}  # of L / sigma²


@dataclass(frozen=True)
class UncertaintyState:
    log_variance: Tensor  # [task], float64 on the CPU
    adam: AdamState


@registered("uncertainty", scale="counts", shift="counts")
@dataclass(frozen=True, kw_only=True)
class Uncertainty(HasOwnScale[UncertaintyState]):
    """Weights proportional to exp(-s), by half for regression.

    >>> method, losses = Uncertainty(), torch.tensor([0.5, 4.0])
    >>> state = method.init(losses)
    >>> state = method.update(state, losses)  # Adam's first step is one `step_size` long
    >>> [round(value, 4) for value in state.log_variance.tolist()]
    [0.0, 0.025]
    >>> [round(weight, 4) for weight in method.weigh(state, losses).tolist()]  # the noisier counts less
    [1.0125, 0.9875]
    """

    needs: ClassVar[Needs] = Needs.LOSSES | Needs.HOST

    forms: Form | tuple[Form, ...] = "classification"  # of all tasks, or of each
    step_size: float = 0.025

    def __post_init__(self) -> None:
        forms = (self.forms,) if isinstance(self.forms, str) else self.forms
        if not set(forms) <= set(FACTORS):
            raise OptionError(
                '`forms` should be "classification" or "regression", once or for each task. '
                f"Found {self.forms!r}."
            )
        if self.step_size <= 0:
            raise OptionError(f"`step_size` should be above 0. Found {self.step_size}.")

    def init(self, losses: Tensor) -> UncertaintyState:
        self._factors(len(losses))
        start = torch.zeros(len(losses), dtype=torch.float64)
        return UncertaintyState(start, adam_init(len(losses)))

    def weigh(
        self, state: UncertaintyState, losses: Tensor, present: Tensor | None = None
    ) -> Tensor:
        # Only ratios count here: from the largest down, no exponent is too large.
        least = min(logs := state.log_variance.tolist())
        shares = [
            f * math.exp(least - s) for f, s in zip(self._factors(len(logs)), logs, strict=True)
        ]
        return weights_of(shares, losses, present)

    def unscaled(
        self, state: UncertaintyState, losses: Tensor, present: Tensor | None = None
    ) -> Tensor:
        """The paper's own weights, whose sum moves with the losses."""
        weights = losses.new_tensor(self._weights(state))
        return weights if present is None else weights * present.to(weights)

    def update(
        self, state: UncertaintyState, losses: Tensor, present: Tensor | None = None
    ) -> UncertaintyState:
        weights = self._weights(state)
        gradient = [0.5 - w * loss for w, loss in zip(weights, losses.tolist(), strict=True)]
        log_variance, adam = adam_step(
            state.log_variance, gradient, state.adam, step_size=self.step_size, present=present
        )
        return UncertaintyState(log_variance, adam)

    def _weights(self, state: UncertaintyState) -> list[float]:
        logs: list[float] = state.log_variance.tolist()
        factors = self._factors(len(logs))
        return [f * math.exp(min(-s, LARGEST_EXPONENT)) for f, s in zip(factors, logs, strict=True)]

    def _factors(self, tasks: int) -> list[float]:
        if isinstance(self.forms, str):
            return [FACTORS[self.forms]] * tasks
        if len(self.forms) != tasks:
            raise ShapeError(
                f"`forms` should be one for all tasks or one for each. Found {len(self.forms)} forms "
                f"and {tasks} tasks. Give them in the order of the tasks."
            )
        return [FACTORS[form] for form in self.forms]
