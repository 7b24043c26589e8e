r"""The plain average of models that began with the same parameters.

    Wortsman et al., "Model soups: averaging weights of multiple fine-tuned models improves accuracy
    without increasing inference time", ICML 2022, the uniform soup of Section 2.

The average of the models is their start plus the average of their task vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class WeightAverage:
    """All models count alike, and there is nothing to choose.

    >>> WeightAverage().combine(torch.tensor([[1.0, 0.0], [3.0, 2.0]]), torch.Generator()).tolist()
    [2.0, 1.0]
    """

    @property
    def scales(self) -> tuple[float, ...]:
        return (1.0,)

    def combine(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        return vectors.mean(dim=0)
