"""What a batch costs: how many numbers the encoder reads, which depends on the batch alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from taskmix.tasks import (
    DenseInputs,
    Inputs,
    PairInputs,
    RaggedInputs,
    SubwordInputs,
    WindowInputs,
)


def batch_cost(batch: Any) -> float:
    """Numbers in a batch, padding included; 1 where it cannot be told."""
    if isinstance(batch, Tensor):
        return float(batch.numel())
    if isinstance(batch, dict):
        return float(batch["input_ids"].numel()) if "input_ids" in batch else 1.0
    if isinstance(batch, tuple):
        return float(sum(batch_cost(part) for part in batch))
    return 1.0


def batch_costs(inputs: Inputs, rows: Tensor) -> NDArray[np.float64]:
    """The costs of the batches `rows` [batch, row], without making them where their size is known.

    >>> from taskmix.tasks import DenseInputs
    >>> inputs = DenseInputs(torch.zeros(10, 3))
    >>> batch_costs(inputs, torch.tensor([[0, 1], [5, 6]])).tolist()  # 2 rows of 3 numbers
    [6.0, 6.0]
    """
    batches, count = rows.shape
    if isinstance(inputs, PairInputs):
        return batch_costs(inputs.first, rows) + batch_costs(inputs.second, rows)
    if isinstance(inputs, RaggedInputs | SubwordInputs):
        least = inputs.minimum if isinstance(inputs, RaggedInputs) else 0
        widths = (inputs.offsets[rows + 1] - inputs.offsets[rows]).amax(dim=1).clamp(min=least)
        return np.asarray(count * widths.double().numpy())
    if isinstance(inputs, DenseInputs):
        return np.full(batches, float(count * inputs.values[0].numel()))
    if isinstance(inputs, WindowInputs):
        return np.full(batches, float(count * (2 * inputs.width + 1)))
    return np.array([batch_cost(inputs.batch(each)) for each in rows])
