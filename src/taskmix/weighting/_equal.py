"""Equal weights: every task's loss counts the same, the baseline of every weighting paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Equal:
    """Weights of one; no state."""

    def init(self, losses: Tensor) -> None:
        return None

    def weigh(self, state: None, losses: Tensor) -> Tensor:
        return torch.ones_like(losses)

    def update(self, state: None, losses: Tensor) -> None:
        return None
