r"""A random projection of long vectors to a few hundred dimensions that keeps inner products.

    Kane and Nelson, "Sparser Johnson-Lindenstrauss Transforms", J. ACM 61(1), 2014.

Every coordinate of a long vector is added, with a random sign, to a few of the short one's. Inner
products are right in expectation, with a deviation of about one over the root of the dimension, and
a coordinate costs a few additions however many dimensions there are. The matrix is made block by
block from (seed, parameter, block), so it is the same each time and never whole in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from taskmix.errors import OptionError

BLOCK = 1 << 16  # coordinates of one random stream: another length is another projection


@dataclass(frozen=True, kw_only=True)
class SparseProjection:
    """From any number of coordinates to `dimensions`."""

    dimensions: int = 256
    entries: int = 4  # of a coordinate: how many of the short vector's it is added to
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dimensions < 1 or not 1 <= self.entries <= self.dimensions:
            raise OptionError(
                "`dimensions` should be 1 or more and `entries` between 1 and that. Found "
                f"{self.dimensions} and {self.entries}."
            )

    def __call__(
        self,
        parts: Sequence[Tensor],  # each [row, coordinate], such as a model's parameters
    ) -> Tensor:
        """[row, dimension]; vectors of no more coordinates than that are kept as they are."""
        if sum(part.shape[1] for part in parts) <= self.dimensions:
            return torch.cat(list(parts), dim=1)
        short = parts[0].new_zeros(self.dimensions, parts[0].shape[0])
        for number, part in enumerate(parts):
            for block, columns in enumerate(torch.split(part, BLOCK, dim=1)):
                matrix = self._matrix(columns.shape[1], number, block).to(columns)
                short += torch.sparse.mm(matrix, columns.t())
        return short.t().contiguous()

    def _matrix(self, coordinates: int, part: int, block: int) -> Tensor:
        """[dimension, coordinate] of one block; the entries of a coordinate are in separate strips."""
        seed = np.random.SeedSequence([self.seed, part, block]).generate_state(1)
        generator = torch.Generator().manual_seed(int(seed[0]))
        strip = torch.arange(self.entries) * self.dimensions // self.entries
        width = torch.diff(torch.cat([strip, torch.tensor([self.dimensions])]))
        place = torch.rand(coordinates, self.entries, generator=generator) * width
        rows = (strip + place.long().clamp(max=width - 1)).flatten()
        signs = torch.randint(2, (coordinates * self.entries,), generator=generator) * 2.0 - 1.0
        columns = torch.arange(coordinates).repeat_interleave(self.entries)
        return torch.sparse_coo_tensor(
            torch.stack([rows, columns]),
            signs / math.sqrt(self.entries),
            (self.dimensions, coordinates),
            check_invariants=False,
        )
