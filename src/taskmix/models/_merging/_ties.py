r"""TIES: small changes are dropped, a sign is elected for each parameter, and who agrees is averaged.

    Yadav et al., "TIES-Merging: Resolving Interference When Merging Models", NeurIPS 2023, Section 4.2
    and Algorithm 1.

1. Trim: of each task vector the `density` with the largest magnitude stay, the others become 0.
2. Elect: the sign of a parameter is that of the sum of what is left, so of the larger total magnitude.
3. Disjoint mean: the mean of what is left and has that sign; zeros do not count.

The paper's $k$ is `density` (20 % there), its $\lambda$ one of `scales` (1 where no rows are there
to choose it on).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from taskmix.errors import OptionError
from taskmix.models._merging._contract import checked_scales


@dataclass(frozen=True, kw_only=True)
class TIES:
    """Trim, elect a sign, and average those that agree.

    >>> vectors = torch.tensor([[4.0, -1.0, 0.1], [2.0, 3.0, 0.2]])
    >>> TIES(density=2 / 3).combine(vectors, torch.Generator()).tolist()  # -1 is outvoted by 3
    [3.0, 3.0, 0.0]
    """

    density: float = 0.2
    scales: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)

    def __post_init__(self) -> None:
        if not 0 < self.density <= 1:
            raise OptionError(
                f"`density` should be above 0 and at most 1. Found {self.density}. It is the share of "
                "each model's changes that is kept."
            )
        object.__setattr__(self, "scales", checked_scales(self.scales))

    def combine(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        trimmed = trim(vectors, self.density)
        elected = torch.sign(trimmed.sum(dim=0))
        agrees = (torch.sign(trimmed) == elected) & (trimmed != 0)
        count = agrees.sum(dim=0).clamp(min=1)
        return torch.where(agrees, trimmed, 0.0).sum(dim=0) / count


def trim(vectors: Tensor, density: float) -> Tensor:
    """Each row with 0 in place of all but its largest magnitudes, at least one of which stays."""
    size = vectors.shape[1]
    kept = min(max(round(density * size), 1), size)
    places = vectors.abs().topk(kept, dim=1).indices
    return torch.zeros_like(vectors).scatter(1, places, vectors.gather(1, places))
