"""Shares of tasks that one process changes and its workers see at once."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from taskmix.errors import ShapeError
from taskmix.numerics import as_distribution

KEPT = 10_000  # versions whose shares are remembered: rows are told of while they are under way


class SharedShares:
    """Shares in memory that workers have in common with the process that made them.

    There are two rows, of which the version says the current one: whoever reads while another writes
    has either the old shares or the new ones, never half of each.
    """

    def __init__(self, shares: ArrayLike) -> None:
        values = _checked(shares, None)
        self._rows = _shared(torch.zeros(2, len(values), dtype=torch.float64))
        self._counters = _shared(torch.zeros(3, dtype=torch.int64))
        self._rows[0] = torch.from_numpy(values)
        self._versions = {0: values}

    def __len__(self) -> int:
        return self._rows.shape[1]

    @property
    def counters(self) -> NDArray[np.int64]:
        """The version, whether a worker has read, how many readers there are; the memory itself."""
        return self._counters.numpy()

    def get(self) -> tuple[int, NDArray[np.float64]]:
        """The version and its shares."""
        while True:
            version = int(self._counters[0])
            shares = self._rows[version % 2].numpy().copy()
            if int(self._counters[0]) - version < 2:
                return version, shares

    def set(self, shares: ArrayLike) -> None:
        """Makes a new version; every worker draws its next row by it."""
        values = _checked(shares, len(self))
        version = int(self._counters[0]) + 1
        self._rows[version % 2] = torch.from_numpy(values)
        self._counters[0] = version
        self._versions[version] = values
        self._versions.pop(version - KEPT, None)

    def of_version(self, version: int) -> NDArray[np.float64] | None:
        """What the shares were, where that is remembered."""
        return self._versions.get(version)


def _shared(tensor: Tensor) -> Tensor:
    return tensor.share_memory_()  # type: ignore[no-untyped-call, no-any-return]


def _checked(shares: ArrayLike, count: int | None) -> NDArray[np.float64]:
    values = as_distribution(shares, name="shares")
    if values.ndim != 1 or (count is not None and len(values) != count):
        raise ShapeError(
            f"`shares` should have one number for each of the {count or ''} streams. Found the shape "
            f"{values.shape}."
        )
    return values
