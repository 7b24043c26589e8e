"""The contract of a way to merge: from where each model ended up to one place for all.

What a task taught its model is the difference of the model's parameters and those that all began with, a
task vector. A method makes one vector of all of them; how far to go along it is chosen on dev rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from taskmix.errors import OptionError


class Merging(Protocol):
    """Makes one vector of several."""

    @property
    def scales(self) -> tuple[float, ...]:
        """How far along the combined vector is tried, on dev rows."""
        ...

    def combine(self, vectors: Tensor, generator: torch.Generator) -> Tensor:
        """[task, parameter] to [parameter]."""
        ...


def checked_scales(scales: Sequence[float]) -> tuple[float, ...]:
    """At least one finite number."""
    if not scales or not all(isinstance(s, float | int) and math.isfinite(s) for s in scales):
        raise OptionError(
            f"`scales` should be finite numbers, at least one. Found {tuple(scales)!r}."
        )
    return tuple(float(scale) for scale in scales)
