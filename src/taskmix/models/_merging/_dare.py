r"""DARE: most of each task vector is dropped at random, and the rest grows to make up for it.

    Yu et al., "Language Models are Super Mario: Absorbing Abilities from Homologous Models as a Free
    Lunch", ICML 2024, Section 3.2: each entry becomes 0 with probability $p$, else it is divided by
    $1 - p$, so that its mean stays; then the vectors are merged by any other method.

The paper's $p$ is `drop`; it tries 0.1 to 0.9. What the vectors are merged by afterwards is `then`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.models._merging._contract import Merging
from taskmix.models._merging._task_arithmetic import TaskArithmetic


@dataclass(frozen=True, kw_only=True)
class DARE:
    """Drop and rescale, then merge.

    >>> vectors = torch.ones(1, 6)
    >>> DARE(drop=0.5).combine(vectors, torch.Generator().manual_seed(1)).tolist()  # some, doubled
    [2.0, 0.0, 0.0, 2.0, 0.0, 2.0]
    """

    drop: float = 0.5
    then: Merging = field(default_factory=TaskArithmetic)

    def __post_init__(self) -> None:
        if not 0 <= self.drop < 1:
            raise OptionError(f"`drop` should be 0 or more and below 1. Found {self.drop}.")

    @property
    def scales(self) -> tuple[float, ...]:
        return self.then.scales

    def combine(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        # Drawn on the CPU, so that the same seed drops the same entries on every device.
        kept = torch.rand(vectors.shape, generator=generator) >= self.drop
        rescaled = vectors * kept.to(vectors.device) / (1 - self.drop)
        return self.then.combine(rescaled, generator)
