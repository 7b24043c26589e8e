"""Small shared steps of the loss weightings: precision, tasks without a loss, the sum of the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from taskmix.errors import ShapeError

# The logarithm of the smallest share a task can have: that of the smallest float64, so that a task
# whose share has all but vanished can still come back.
LOG_FLOOR = -700.0


def precise(losses: Tensor) -> Tensor:
    """The losses in float64, or in float32 on a device that has no float64."""
    return losses.detach().to(torch.float32 if losses.device.type == "mps" else torch.float64)


def softmax_shares(logits: Sequence[float]) -> list[float]:
    """Shares [task] that sum to one; for tens of numbers this is faster than an array's."""
    top = max(logits)
    parts = [math.exp(value - top) for value in logits]
    total = sum(parts)
    return [part / total for part in parts]


def weights_of(shares: Sequence[float], losses: Tensor, present: Tensor | None) -> Tensor:
    """Shares [task] above 0, in any scale, as weights beside the losses that sum to their number."""
    count = len(shares)
    if present is not None:
        here = present.tolist()
        shares, count = (
            [s if there else 0.0 for s, there in zip(shares, here, strict=True)],
            sum(here),
        )
    unit = count / sum(shares)
    return torch.tensor([s * unit for s in shares], dtype=losses.dtype, device=losses.device)


def sum_to_tasks(weights: Tensor, present: Tensor | None) -> Tensor:
    """Weights [task] from 0 up, scaled to sum to the number of tasks that have a loss.

    Weights of 0 alone (a user's fixed ones, where their tasks are missing) stay what they are.
    """
    if present is not None:
        present = present.to(weights.device)
        weights = torch.where(present, weights, torch.zeros_like(weights))
        total = weights.sum()
        count = present.sum()
        return torch.where(total == 0, weights, weights * (count / total))
    return weights * (len(weights) / weights.sum())


def softmax_of_present(logits: Tensor, present: Tensor | None) -> Tensor:
    """Shares [task] that sum to one over the tasks that have a loss."""
    if present is not None:
        logits = logits.masked_fill(~present.to(logits.device), -torch.inf)
    return torch.softmax(logits, dim=0)


def times_tasks(shares: Tensor, present: Tensor | None) -> Tensor:
    """Shares that sum to one as weights that sum to the number of tasks that have a loss."""
    return shares * (len(shares) if present is None else present.sum().to(shares.device))


def keep_absent(new: Tensor, old: Tensor, present: Tensor | None) -> Tensor:
    """`new` [task], but `old` for the tasks that have no loss in this step."""
    return new if present is None else torch.where(present.to(new.device), new, old)


def per_task(values: Sequence[float], losses: Tensor, *, name: str) -> Tensor:
    """A user's numbers, one a task, as float64 beside the losses."""
    if len(values) != len(losses):
        raise ShapeError(
            f"`{name}` should have one number for each task. Found {len(values)} numbers and "
            f"{len(losses)} tasks. Give them in the order of the tasks."
        )
    kind = torch.float32 if losses.device.type == "mps" else torch.float64
    return _kept(tuple(values), kind, losses.device)


@lru_cache(maxsize=64)
def _kept(values: tuple[float, ...], kind: torch.dtype, device: torch.device) -> Tensor:
    """Brought to a device once: a CUDA graph cannot hold a copy from the host."""
    return torch.tensor(values, dtype=kind, device=device)
