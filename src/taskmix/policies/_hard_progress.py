r"""Progress on hard tasks: a step on a task that improves is worth as much as the task is still bad.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 16.

The paper's $L_k(x_t, \theta_t)$ is `outcome.loss`, its $L_k(x_{t-\delta_k}, \theta_{t-\delta_k})$ is
`outcome.previous_loss`. The loss is taken for a negative log likelihood, so the reward lies in [0, 1];
a loss below zero (of a density) counts as zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from taskmix.policies._policy import Outcome
from taskmix.policies._reward import per_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class HardProgress:
    """1 − exp(−loss) where the loss fell since the task's last visit, else 0; None at the first.

    >>> better = Outcome(Choice(task=0, probability=0.5), loss=np.log(2), previous_loss=0.9)
    >>> reward, _ = HardProgress().observe(None, better, np.random.default_rng(0))
    >>> round(float(reward), 6)  # 1 - exp(-log 2)
    0.5
    """

    needs_loss_after: ClassVar[bool] = False
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
        if outcome.previous_loss is None:
            return None, None
        fell = outcome.loss < outcome.previous_loss
        reward = -math.expm1(-max(outcome.loss, 0.0)) if fell else 0.0  # Eq. 16
        return (per_unit(reward, outcome) if self.per_cost else reward), None


def hard_progress(
    losses: NDArray[np.float64],  # [...]
    previous: NDArray[np.float64],  # [...], NaN at a task's first visit
) -> NDArray[np.float64]:
    """The same for many outcomes at once; NaN stands for no reward.

    >>> losses, previous = np.log([2.0, 2.0, 2.0]), np.array([0.9, 0.1, np.nan])
    >>> hard_progress(losses, previous).round(6).tolist()
    [0.5, 0.0, nan]
    """
    rewards = np.where(losses < previous, -np.expm1(-np.maximum(losses, 0.0)), 0.0)
    return np.where(np.isnan(previous), np.nan, rewards)
