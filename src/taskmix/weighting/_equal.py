"""Equal weights: every task's loss counts the same, the baseline of every weighting paper.

Cost: nothing. Scale and shift of the losses: no effect on the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from taskmix.weighting._weighting import Needs, registered


@registered("equal", scale="ignored", shift="ignored")
@dataclass(frozen=True, kw_only=True)
class Equal:
    """Weights of one; no state.

    >>> method = Equal()
    >>> method.weigh(method.init(torch.tensor([2.0, 5.0])), torch.tensor([2.0, 5.0])).tolist()
    [1.0, 1.0]
    """

    needs: ClassVar[Needs] = Needs.LOSSES

    def init(self, losses: Tensor) -> None:
        return None

    def weigh(self, state: None, losses: Tensor, present: Tensor | None = None) -> Tensor:
        return torch.ones_like(losses) if present is None else present.to(losses)

    def update(self, state: None, losses: Tensor, present: Tensor | None = None) -> None:
        return None
