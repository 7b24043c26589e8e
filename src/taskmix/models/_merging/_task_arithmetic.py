r"""Task arithmetic: the start plus a multiple of the sum of all task vectors.

    Ilharco et al., "Editing Models with Task Arithmetic", ICLR 2023, Section 4.

The paper's $\tau_t$ is a row of `vectors`, its $\lambda$ one of `scales`, chosen on held-out rows. The
paper tries 0.05, 0.1, ..., 1; the default here is a third of these, as each costs an evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from taskmix.models._merging._contract import checked_scales


@dataclass(frozen=True, kw_only=True)
class TaskArithmetic:
    """The sum; a scale of one over the number of tasks is the plain average.

    >>> method = TaskArithmetic()
    >>> method.combine(torch.tensor([[1.0, 0.0], [3.0, 2.0]]), torch.Generator()).tolist()
    [4.0, 2.0]
    """

    scales: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scales", checked_scales(self.scales))

    def combine(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        return vectors.sum(dim=0)
