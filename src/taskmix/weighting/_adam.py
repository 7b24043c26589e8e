"""Adam on a vector of one number a task, for the methods that learn their weights by gradient steps.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.

The papers hand such numbers to the model's optimiser. Here each method takes its own steps: the model's
weight decay and learning rate schedule, made for another purpose, do not reach them, and the moments
are part of the method's state, so that a resumed run goes on where it stopped. All of it is on the CPU,
where a few numbers cost less than one launch on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

LARGEST_GRADIENT = 1e100  # its square is still a float64
# The paper's β₁ and β₂: how much of the running means is kept in a step.
KEPT_MEAN, KEPT_SQUARE = 0.9, 0.999


@dataclass(frozen=True)
class AdamState:
    mean: Tensor  # [task], of the gradients
    square: Tensor  # [task], of the squared gradients
    count: Tensor  # [task], steps taken; a task without a loss takes none


def adam_init(tasks: int) -> AdamState:
    return AdamState(*(torch.zeros(tasks, dtype=torch.float64) for _ in range(3)))


def adam_step(
    values: Tensor,
    gradient: Sequence[float],
    state: AdamState,
    *,
    step_size: float,
    present: Tensor | None = None,
) -> tuple[Tensor, AdamState]:
    """The values after one step down the gradient, and Adam's own state."""
    # Lists of floats: for tens of tasks they are faster than any array library's calls.
    old = values.tolist(), state.mean.tolist(), state.square.tolist(), state.count.tolist()
    slopes = [min(max(slope, -LARGEST_GRADIENT), LARGEST_GRADIENT) for slope in gradient]
    mean = [
        KEPT_MEAN * m + (1 - KEPT_MEAN) * slope for m, slope in zip(old[1], slopes, strict=True)
    ]
    square = [
        KEPT_SQUARE * s + (1 - KEPT_SQUARE) * g * g for s, g in zip(old[2], slopes, strict=True)
    ]
    count = [steps + 1 for steps in old[3]]
    # Both means start at 0, and are too small by these factors until they have seen enough.
    moved = [
        value - step_size * (m / (1 - KEPT_MEAN**n)) / (math.sqrt(s / (1 - KEPT_SQUARE**n)) + 1e-8)
        for value, m, s, n in zip(old[0], mean, square, count, strict=True)
    ]
    new: tuple[list[float], ...] = (moved, mean, square, count)
    if present is not None:
        here = present.tolist()
        new = tuple(
            [a if there else b for a, b, there in zip(after, before, here, strict=True)]
            for after, before in zip(new, old, strict=True)
        )
    flat = [number for column in new for number in column]
    value, *own = torch.tensor(flat, dtype=torch.float64).view(4, -1).unbind()
    return value, AdamState(*own)
