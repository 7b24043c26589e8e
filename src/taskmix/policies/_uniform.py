"""Uniform: every task is as likely as any other, a strong baseline wherever it was tried.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes, draw


@dataclass(frozen=True)
class UniformState:
    probabilities: Probabilities


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """No options and nothing to learn."""

    def init(self, sizes: Sizes) -> UniformState:
        return UniformState(np.full(len(sizes), 1.0 / len(sizes)))

    def probabilities(self, state: UniformState) -> Probabilities:
        return state.probabilities

    def select(self, state: UniformState, generator: np.random.Generator) -> Choice:
        return draw(state.probabilities, generator)

    def update(self, state: UniformState, outcome: Outcome) -> UniformState:
        return state
