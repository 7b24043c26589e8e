"""What multiplies the gradients of a step, and the walk back through all of its losses at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Factors:
    """What multiplies the gradients but not the losses."""

    scaler: torch.amp.GradScaler | None = None
    scale: float = 1.0
    retain_graph: bool = False

    def walk(self, losses: Sequence[Tensor], weights: Tensor) -> None:
        """Steps back through all losses at once, each with its weight: no sum has to be built."""
        if self.scale != 1:
            weights = weights * self.scale
        if self.scaler is not None:
            weights = self.scaler.scale(weights)
        starts = weights.unbind()
        if any(loss.dtype is not weights.dtype for loss in losses):
            starts = tuple(w.to(loss.dtype) for w, loss in zip(starts, losses, strict=True))
        # What `torch.autograd.backward` does, without its checks of each pair of tensors, which
        # take longer than all the rest of a weighting.
        torch.autograd.Variable._execution_engine.run_backward(
            tuple(losses),
            starts,
            self.retain_graph,
            False,
            (),
            allow_unreachable=True,
            accumulate_grad=True,
        )

    def start(self, losses: Sequence[Tensor]) -> tuple[list[Tensor | None], float]:
        """What each loss's own gradient is taken to be, and that number."""
        if self.scaler is None:
            return [None] * len(losses), 1.0
        factor = self.scaler.scale(torch.ones((), device=losses[0].device))
        return [factor.to(loss.dtype) for loss in losses], float(factor)
