"""What an estimate from gradients takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from taskmix.errors import OptionError

Evaluated = Literal["linear", "network"]


@dataclass(frozen=True, kw_only=True)
class GradientOptions:
    """What one estimate takes.

    >>> options = GradientOptions(share=0.25, models=2)
    >>> steps = 400
    >>> options.models * round(options.share * steps)  # all that is trained, however many subsets
    200
    """

    dimensions: int = 256  # of the projected gradients
    rows: int = 200  # of each task and split, at most
    ridge: float = 0.03  # of the mean curvature
    share: float = 0.125  # of the steps that the model on all tasks is trained for
    models: int = 2  # on all tasks, each with a seed of its own
    evaluate: Evaluated = "linear"  # whose outputs: the moved network's, or their linear guess
    length: float = 0.1  # of the move, as a share of the norm of the shared parameters
    dev_rows: int = 1000  # of each task, at most, that go through the moved network

    def __post_init__(self) -> None:
        for name in ("dimensions", "rows", "models"):
            if getattr(self, name) < 1:
                raise OptionError(f"`{name}` should be 1 or more. Found {getattr(self, name)}.")
        if not (math.isfinite(self.ridge) and self.ridge > 0 and 0 < self.share <= 1):
            raise OptionError(
                "`ridge` should be a number above zero, and `share` above 0 and at most 1. Found "
                f"{self.ridge} and {self.share}."
            )
