r"""Score improvement: how much a task's score on held-out data rose since it was last measured.

    Guo, Pasunuru and Bansal, "AutoSeM: Automatic Task Selection and Mixing in Multi-Task Learning",
    NAACL 2019, Section 3.2, reward the rise of the validation score.

The score comes with the outcome: a loop that evaluates the chosen task after its step puts the value
into `outcome.score`, and leaves None at all other steps. So the reward is as frequent as the loop can
afford, and a step without a measurement has none. The rise is credited to the step at which it was
seen, although the steps since the last measurement all had a part in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from taskmix.policies._policy import Outcome
from taskmix.policies._reward import per_unit


@dataclass(frozen=True, slots=True)
class ScoreImprovementState:
    latest: NDArray[np.float64]  # [task], NaN where no score is known yet


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreImprovement:
    """The chosen task's score minus its last known one; None at the first and where unmeasured.

    >>> reward, generator = ScoreImprovement(), np.random.default_rng(0)
    >>> _, state = reward.observe(reward.init(1), Outcome(Choice(0, 1.0), 1.0, score=0.5), generator)
    >>> reward.observe(state, Outcome(Choice(0, 1.0), 1.0, score=0.75), generator)[0]
    0.25
    """

    needs_loss_after: ClassVar[bool] = False
    steps_without_draws: ClassVar[float] = math.inf

    per_cost: bool = False

    def init(self, task_count: int) -> ScoreImprovementState:
        return ScoreImprovementState(np.full(task_count, np.nan))

    def observe(
        self,
        state: ScoreImprovementState,
        outcome: Outcome,
        generator: np.random.Generator,
    ) -> tuple[float | None, ScoreImprovementState]:
        if outcome.score is None:
            return None, state
        task = outcome.choice.task
        before = float(state.latest[task])
        latest = state.latest.copy()
        latest[task] = outcome.score
        if np.isnan(before):
            return None, ScoreImprovementState(latest)
        rise = outcome.score - before
        return (per_unit(rise, outcome) if self.per_cost else rise), ScoreImprovementState(latest)
