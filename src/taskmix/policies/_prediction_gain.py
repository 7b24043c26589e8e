r"""Prediction gain: how much one step lowered the loss of the very batch it was taken on.

    Graves, Bellemare and Menick, "Automated Curriculum Learning for Neural Networks", 2017,
    Section 4.1; Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019,
    Section 3.2.1.

The paper's $L_k(x, \theta)$ is `outcome.loss` and its $L_k(x, \theta')$ is `outcome.loss_after`: the
same batch with the same dropout, or the difference is noise. It errs upwards, since it is measured on
the batch just trained on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from taskmix.errors import RunError
from taskmix.policies._policy import Outcome
from taskmix.policies._reward import per_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionGain:
    """The loss before a step minus the loss after it; unbounded, so scale it for a bandit.

    >>> outcome = Outcome(Choice(task=0, probability=0.5), loss=0.75, loss_after=0.5)
    >>> PredictionGain().observe(None, outcome, np.random.default_rng(0))[0]
    0.25
    """

    needs_loss_after: ClassVar[bool] = True
    steps_without_draws: ClassVar[float] = math.inf

    per_cost: bool = False

    def init(self, task_count: int) -> None:
        return None

    def observe(
        self,
        state: None,
        outcome: Outcome,
        generator: np.random.Generator,
    ) -> tuple[float | None, None]:
        if outcome.loss_after is None:
            raise RunError(
                "Prediction gain needs the loss after the step. Found none for task "
                f"{outcome.choice.task}. Measure the same batch again, as `needs_loss_after` asks."
            )
        gain = outcome.loss - outcome.loss_after
        return (per_unit(gain, outcome) if self.per_cost else gain), None
