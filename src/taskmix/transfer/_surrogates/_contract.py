"""What every surrogate can do: say which loss a subset of sources will give the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import ShapeError
from taskmix.transfer._surrogates._outcomes import SubsetOutcomes


class Surrogate(Protocol):
    """The paper's g(S); g(∅) is the measured loss of the target alone."""

    @property
    def target(self) -> str: ...

    @property
    def sources(self) -> tuple[str, ...]: ...

    @property
    def anchor(self) -> float: ...  # g(∅)

    def predict(self, subsets: ArrayLike) -> NDArray[np.float64]: ...  # [..., source] to [...]


Fit = Callable[[SubsetOutcomes], Surrogate]


def as_indicators(subsets: ArrayLike, sources: int) -> NDArray[np.float64]:
    """Subsets [..., source] as zeros and ones."""
    members = np.asarray(subsets, dtype=np.float64)
    if members.ndim == 0 or members.shape[-1] != sources:
        raise ShapeError(
            f"A subset should have one place for each of the {sources} sources. Found shape "
            f"{members.shape}."
        )
    return members
