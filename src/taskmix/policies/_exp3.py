r"""Exp3: exponential weights for a bandit whose rewards nobody draws from a distribution.

    Auer, Cesa-Bianchi, Freund and Schapire, "The Nonstochastic Multiarmed Bandit Problem", SIAM
    Journal on Computing 32(1), 2002, Figure 1.

The paper's $\gamma$ is `exploration`, its $K$ is the number of tasks, its $\hat x_j(t)$ is
`estimate`, and the logarithm of its $w_j(t)$ is `log_weights[j]`, minus a constant that no
probability depends on: the weights themselves overflow after some ten thousand pulls of one arm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes, draw, typed_as
from taskmix.policies._reward import finite_reward
from taskmix.policies._shares import checked_sizes

# Beyond this one step settles the softmax in float64 anyway; larger ones only add up to infinity.
LARGEST_STEP = 1e6


@dataclass(frozen=True, slots=True)
class Exp3State:
    log_weights: NDArray[np.float64]  # [task], the largest is zero


@typed_as("exp3", "exploration")
@dataclass(frozen=True, slots=True, kw_only=True)
class Exp3:
    """For rewards in [0, 1]; a step without a reward teaches nothing.

    >>> policy = Exp3(exploration=0.5)
    >>> state = policy.init(np.array([10, 10]))
    >>> good = Outcome(Choice(task=0, probability=0.5), loss=0.7, reward=1.0)
    >>> policy.probabilities(policy.update(state, good)).round(4).tolist()
    [0.5612, 0.4388]
    """

    exploration: float = 0.1  # γ, the share of the choices made uniformly

    def __post_init__(self) -> None:
        if not 0 < self.exploration <= 1:
            raise OptionError(
                f"`exploration` should lie above 0 and not above 1. Found {self.exploration}."
            )

    def init(self, sizes: Sizes) -> Exp3State:
        return Exp3State(np.zeros(len(checked_sizes(sizes))))

    def probabilities(self, state: Exp3State) -> Probabilities:
        weights: Probabilities = np.exp(state.log_weights)
        weights *= (1 - self.exploration) / weights.sum()
        weights += self.exploration / len(weights)
        return weights

    def select(self, state: Exp3State, generator: np.random.Generator) -> Choice:
        return draw(self.probabilities(state), generator)

    def update(self, state: Exp3State, outcome: Outcome) -> Exp3State:
        reward = finite_reward(outcome)
        if reward is None:
            return state
        # Rare choices count for more: unbiased, although only one task was seen.
        estimate = reward / outcome.choice.probability
        step = self.exploration * estimate / len(state.log_weights)
        log_weights = state.log_weights.copy()
        log_weights[outcome.choice.task] += min(max(step, -LARGEST_STEP), LARGEST_STEP)
        return Exp3State(log_weights - log_weights.max())
