"""The line from the shape of a law to its losses: its slope and its level are never searched for."""

from __future__ import annotations

from torch import Tensor

SHRUNK_BY = 0.1  # of a run with a slope of 0


def best_line(shape: Tensor, values: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """Of shapes and values [metric, run], the centre of shapes and the slope, [metric, 1] each."""
    count = known.sum(dim=1, keepdim=True).clamp_min(1.0)
    center = (known * shape).sum(dim=1, keepdim=True) / count
    apart = known * (shape - center)
    square = apart.square().sum(dim=1, keepdim=True)
    shrunk = square * (1 + SHRUNK_BY / count) + 1e-18
    return center, (apart * values).sum(dim=1, keepdim=True) / shrunk
