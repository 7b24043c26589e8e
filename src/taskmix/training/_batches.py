"""Rows of a split in batches, for a model that is asked and not trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from taskmix.models import HardSharing
from taskmix.tasks import Inputs, PaddedInputs

PLACES_ON_CPU = 1 << 13  # words or pieces in a batch: more fall out of the caches


@contextmanager
def evaluating(model: HardSharing) -> Iterator[None]:
    """A model in evaluation mode for the length of a `with` block."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def batches_of(inputs: Inputs, batch_size: int) -> tuple[Tensor, list[int]]:
    """The rows in an order, and how many of them go together.

    Rows of different lengths are padded to the longest of their batch, so those of like length go
    together; on the CPU fewer of them where they are long: what falls out of the caches is slow.
    """
    if not isinstance(inputs, PaddedInputs):
        full, rest = divmod(len(inputs), batch_size)
        return torch.arange(len(inputs)), [batch_size] * full + [rest] * bool(rest)
    lengths = inputs.lengths
    most = PLACES_ON_CPU if lengths.device.type == "cpu" else math.inf
    lengths = lengths.cpu()
    order = torch.argsort(lengths, stable=True)
    sizes: list[int] = []
    begin = 0
    for place, length in enumerate(lengths[order].tolist()):
        count = place - begin
        if count == batch_size or (count and (count + 1) * length > most):
            sizes.append(count)
            begin = place
    return order, [*sizes, len(order) - begin]
