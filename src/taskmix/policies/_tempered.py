"""Tempered: tasks in proportion to their size to the power 1/τ.

    Temperature 1 is in proportion to size (Glover and Hokamp, 2019, Eq. 4); a large one is nearly
    uniform. Arivazhagan et al., "Massively Multilingual NMT in the Wild", 2019, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taskmix.errors import InputError, OptionError
from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes, draw


@dataclass(frozen=True)
class TemperedState:
    probabilities: Probabilities


@dataclass(frozen=True, kw_only=True)
class Tempered:
    """Between size-proportional (1) and uniform (infinity)."""

    temperature: float = 2.0  # the paper's tau

    def __post_init__(self) -> None:
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise OptionError(
                f"`temperature` should be a positive number. Found {self.temperature}. "
                "1 is in proportion to size, 5 nearly uniform."
            )

    def init(self, sizes: Sizes) -> TemperedState:
        if (np.asarray(sizes) < 1).any():
            raise InputError(
                f"Every task should have at least one row. Found sizes {list(sizes)}. "
                "Leave empty tasks out."
            )
        logs = np.log(np.asarray(sizes, dtype=np.float64)) / self.temperature
        weights = np.exp(logs - logs.max())
        return TemperedState(weights / weights.sum())

    def probabilities(self, state: TemperedState) -> Probabilities:
        return state.probabilities

    def select(self, state: TemperedState, generator: np.random.Generator) -> Choice:
        return draw(state.probabilities, generator)

    def update(self, state: TemperedState, outcome: Outcome) -> TemperedState:
        return state
