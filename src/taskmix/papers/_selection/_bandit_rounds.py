"""The multitask bandit played round by round, by any policy and with any reward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.policies import AnyPolicy, AnyReward, Outcome
from taskmix.tasks import MultitaskBandit


@dataclass(frozen=True, slots=True)
class BanditRound:
    """One pull, what came of it, and all scores after it.

    >>> from taskmix.policies import Choice, Outcome
    >>> pulled = Outcome(Choice(task=1, probability=0.5), loss=0.8)
    >>> BanditRound(pulled, np.array([0.0, 0.2])).outcome.choice.task
    1
    """

    outcome: Outcome
    scores: NDArray[np.float64]  # [arm]


def play_rounds(
    bandit: MultitaskBandit,  # of one environment
    policy: AnyPolicy,
    *,
    reward: AnyReward,
    generator: np.random.Generator,
) -> Iterator[BanditRound]:
    """Plays until pulls have cost as much as `bandit.steps`, one environment and one policy.

    >>> from taskmix.policies import HardProgress, Uniform
    >>> from taskmix.tasks import MultitaskBandit
    >>> bandit = MultitaskBandit(
    ...     oracle=np.array([0.5, 0.5]), ceiling=np.ones(2), learning=np.array([0.2, 0.2]),
    ...     forgetting=np.zeros(2), steps=3, cost=np.ones(2))
    >>> rounds = play_rounds(
    ...     bandit, Uniform(), reward=HardProgress(), generator=np.random.default_rng(0))
    >>> [round(float(each.scores.sum()), 1) for each in rounds]  # every pull teaches 0.2
    [0.2, 0.4, 0.6]
    """
    count = len(bandit.oracle)
    scores = bandit.init()
    state, reward_state = policy.init(np.ones(count, dtype=np.int64)), reward.init(count)
    latest: list[float | None] = [None] * count
    left = float(bandit.steps)
    while left > 0:
        choice = policy.select(state, generator)
        arm = choice.task
        before = float(bandit.losses(scores[arm]))
        scores = bandit.pull(scores, np.asarray(arm))
        after = float(bandit.losses(scores[arm]))
        cost = float(bandit.cost[arm])
        outcome = Outcome(choice, before, latest[arm], after, cost)
        value, reward_state = reward.observe(reward_state, outcome, generator)
        outcome = Outcome(choice, before, latest[arm], after, cost, value)
        state = policy.update(state, outcome)
        latest[arm] = before
        left -= cost
        yield BanditRound(outcome, scores)
