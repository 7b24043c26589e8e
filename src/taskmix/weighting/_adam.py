"""Adam on a vector of one number a task, for the methods that learn their weights by gradient steps.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.

The papers hand such numbers to the model's optimiser. Here each method takes its own steps: the
model's weight decay and learning rate schedule, made for another purpose, do not reach them, and
the moments are part of the method's state, so that a resumed run goes on where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from taskmix.weighting._scale import keep_absent

LARGEST = 1e100  # of a gradient: its square is still a float64


@dataclass(frozen=True)
class AdamState:
    mean: Tensor  # [task], of the gradients
    square: Tensor  # [task], of the squared gradients
    count: Tensor  # [task], steps taken; a task without a loss takes none


def adam_init(values: Tensor) -> AdamState:
    return AdamState(*(torch.zeros_like(values) for _ in range(3)))


def adam_step(
    values: Tensor,
    gradient: Tensor,
    state: AdamState,
    *,
    step_size: float,
    decay: float = 0.0,  # times the values is added to the gradient
    present: Tensor | None = None,
    betas: tuple[float, float] = (0.9, 0.999),
) -> tuple[Tensor, AdamState]:
    """The values after one step down the gradient, and Adam's own state."""
    gradient = (gradient + decay * values).clamp(-LARGEST, LARGEST)
    mean = state.mean.lerp(gradient, 1 - betas[0])
    square = state.square.lerp(gradient * gradient, 1 - betas[1])
    count = state.count + 1
    # Both means start at 0, and are too small by these factors until they have seen enough.
    mean_share, square_share = 1 - betas[0] ** count, 1 - betas[1] ** count
    moved = values - step_size * (mean / mean_share) / ((square / square_share).sqrt() + 1e-8)
    after = AdamState(
        keep_absent(mean, state.mean, present),
        keep_absent(square, state.square, present),
        keep_absent(count, state.count, present),
    )
    return keep_absent(moved, values, present), after
