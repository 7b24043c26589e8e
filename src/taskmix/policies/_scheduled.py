r"""Scheduled: probabilities that change with the step, by stages or along straight lines.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 3.3.2 ("in
    general these policies may be dynamic") and Section 5, which leaves them for later work.

The paper's $t$ counts from 1; `step` counts the updates so far, from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError, ShapeError
from taskmix.numerics import as_distribution
from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes, draw, typed_as
from taskmix.policies._shares import checked_sizes


@dataclass(frozen=True, slots=True)
class ScheduledState:
    starts: NDArray[np.int64]  # [stage]
    shares: NDArray[np.float64]  # [stage, task]
    step: int = 0


@typed_as("scheduled", "stages")
@dataclass(frozen=True, slots=True)
class Scheduled:
    """Stages `(first step, shares)`; each holds until the next one starts.

    With `interpolate` the shares move in a straight line from one stage to the next, and keep the
    last ones from there on.

    >>> policy = Scheduled(((0, (0.5, 0.5)), (2, (0.1, 0.9))), interpolate=True)
    >>> state = policy.init(np.array([10, 10]))
    >>> state = policy.update(state, Outcome(Choice(0, 0.5), loss=1.0))
    >>> policy.probabilities(state).round(6).tolist()  # half-way
    [0.3, 0.7]
    """

    stages: Sequence[tuple[int, Sequence[float]]]
    interpolate: bool = False

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.stages]
        if not starts or starts[0] != 0:
            raise OptionError(
                f"The first of `stages` should start at step 0. Found the starts {starts}."
            )
        if any(later <= earlier for earlier, later in pairwise(starts)):
            raise OptionError(f"`stages` should start one after another. Found {starts}.")
        lengths = {len(shares) for _, shares in self.stages}
        if len(lengths) > 1:
            raise ShapeError(
                f"Every stage should have one share per task. Found {sorted(lengths)} shares."
            )
        table = as_distribution(
            [list(shares) for _, shares in self.stages], name="stages", full_support=True
        )
        stages = zip(starts, table.tolist(), strict=True)
        object.__setattr__(self, "stages", tuple((int(s), tuple(row)) for s, row in stages))

    def init(self, sizes: Sizes) -> ScheduledState:
        count = len(checked_sizes(sizes))
        if count != len(self.stages[0][1]):
            raise ShapeError(
                "Every stage should have one share per task. Found "
                f"{len(self.stages[0][1])} shares for {count} tasks."
            )
        starts = np.array([start for start, _ in self.stages], dtype=np.int64)
        return ScheduledState(starts, np.array([shares for _, shares in self.stages]))

    def probabilities(self, state: ScheduledState) -> Probabilities:
        stage = int(state.starts.searchsorted(state.step, side="right")) - 1
        here: Probabilities = state.shares[stage]
        if not self.interpolate or stage + 1 == len(state.starts):
            return here
        start, end = int(state.starts[stage]), int(state.starts[stage + 1])
        gone = (state.step - start) / (end - start)
        # Between two distributions every point of the line is one, so nothing is to be scaled.
        there: Probabilities = state.shares[stage + 1]
        return (1 - gone) * here + gone * there

    def select(self, state: ScheduledState, generator: np.random.Generator) -> Choice:
        return draw(self.probabilities(state), generator)

    def update(self, state: ScheduledState, outcome: Outcome) -> ScheduledState:
        return replace(state, step=state.step + 1)
