"""Tables of subsets whose truth is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.transfer import SubsetOutcomes, fixed_size_subsets, gather_outcomes

NAMES = tuple("abcdefghijklmnopqrstuvwxyz")


def table(
    subsets: NDArray[np.bool_],
    outcomes: NDArray[np.float64],
    *,
    alone: list[float],
    higher_is_better: bool = False,
) -> SubsetOutcomes:
    """Runs of subsets, and of the target alone, as a table."""
    count = subsets.shape[1]
    return gather_outcomes(
        np.concatenate([subsets, np.zeros((len(alone), count), dtype=bool)]),
        np.concatenate([outcomes, alone]),
        target="target",
        sources=NAMES[:count],
        higher_is_better=higher_is_better,
    )


def simulated(
    generator: np.random.Generator,
    *,
    effects: NDArray[np.float64],
    size: int = 3,
    count: int = 60,
    noise: float = 0.1,
    alone: int = 6,
    spread: float = 0.0,  # how much noisier a subset with the first source is
) -> SubsetOutcomes:
    """A target of loss 1 alone, changed by `effects`, with noise on every run."""
    subsets = fixed_size_subsets(len(effects), size, count, generator=generator)
    deviation = noise * (1 + spread * subsets[:, 0])
    losses = 1 + subsets @ effects + deviation * generator.normal(size=count)
    return table(subsets, losses, alone=list(1 + noise * generator.normal(size=alone)))
