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

LARGEST = 1e100  # of a gradient: its square is still a float64
MEAN, SQUARE = 0.9, 0.999  # how much of the running means is kept in a step


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
    # Floats one by one: for tens of tasks they are faster than any array library's calls.
    rows = list(
        zip(
            values.tolist(),
            state.mean.tolist(),
            state.square.tolist(),
            state.count.tolist(),
            strict=True,
        )
    )
    here = [True] * len(rows) if present is None else present.tolist()
    moved = [
        _one_step(*row, slope, step_size) if there else row
        for row, slope, there in zip(rows, gradient, here, strict=True)
    ]
    flat = [number for column in zip(*moved, strict=True) for number in column]
    value, *own = torch.tensor(flat, dtype=torch.float64).view(4, -1).unbind()
    return value, AdamState(*own)


def _one_step(
    value: float, mean: float, square: float, count: float, slope: float, step_size: float
) -> tuple[float, float, float, float]:
    slope = min(max(slope, -LARGEST), LARGEST)
    mean = MEAN * mean + (1 - MEAN) * slope
    square = SQUARE * square + (1 - SQUARE) * (slope * slope)
    count += 1
    # Both means start at 0, and are too small by these factors until they have seen enough.
    size = math.sqrt(square / (1 - SQUARE**count)) + 1e-8
    return value - step_size * (mean / (1 - MEAN**count)) / size, mean, square, count
