"""Size-proportional: a task is as likely as its share of all rows.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes
from taskmix.policies._tempered import Tempered, TemperedState

_PLAIN = Tempered(temperature=1.0)


@dataclass(frozen=True, kw_only=True)
class SizeProportional:
    """No options: it is `Tempered` at temperature 1."""

    def init(self, sizes: Sizes) -> TemperedState:
        return _PLAIN.init(sizes)

    def probabilities(self, state: TemperedState) -> Probabilities:
        return state.probabilities

    def select(self, state: TemperedState, generator: np.random.Generator) -> Choice:
        return _PLAIN.select(state, generator)

    def update(self, state: TemperedState, outcome: Outcome) -> TemperedState:
        return state
