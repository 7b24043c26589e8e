"""Adam on a vector of one number a task, for the methods that learn their weights by gradient steps.

    Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.

The papers hand such numbers to the model's optimiser. Here each method takes its own steps: the model's
weight decay and learning rate schedule, made for another purpose, do not reach them, and the moments
are part of the method's state, so that a resumed run goes on where it stopped. All of it is on the CPU,
where a few numbers cost less than one launch on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Vector = NDArray[np.float64]

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
    gradient: Vector,
    state: AdamState,
    *,
    step_size: float,
    present: Tensor | None = None,
) -> tuple[Tensor, AdamState]:
    """The values after one step down the gradient, and Adam's own state."""
    gradient = np.minimum(np.maximum(gradient, -LARGEST), LARGEST)
    mean = MEAN * state.mean.numpy() + (1 - MEAN) * gradient
    square = SQUARE * state.square.numpy() + (1 - SQUARE) * (gradient * gradient)
    count = state.count.numpy() + 1
    # Both means start at 0, and are too small by these factors until they have seen enough.
    size = np.sqrt(square / (1 - SQUARE**count)) + 1e-8
    moved = values.numpy() - step_size * (mean / (1 - MEAN**count)) / size
    if present is not None:
        here = present.numpy()
        moved = np.where(here, moved, values.numpy())
        mean = np.where(here, mean, state.mean.numpy())
        square = np.where(here, square, state.square.numpy())
        count = np.where(here, count, state.count.numpy())
    after = AdamState(*(torch.from_numpy(part) for part in (mean, square, count)))
    return torch.from_numpy(moved), after
