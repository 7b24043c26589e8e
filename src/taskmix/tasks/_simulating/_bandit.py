r"""The multitask bandit: arms that are learned when pulled, are forgotten when not, and have an end.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 4.1.

The paper's $\pi^{oracle}$ is `oracle`, MaxP is `ceiling`, LI is `learning`, FI is `forgetting`, T is
`steps` and $\alpha^{MTL}$ is `concentration`. A score is a probability, so the loss of an arm is minus
its logarithm. All arrays may have leading axes: one call then moves many environments at once.

Beyond the paper: a pull of one arm may teach or harm others (`transfer`), and arms may differ in what
a pull costs (`cost`); with the defaults neither changes anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError

# A score of zero has an infinite loss, and the difference of two such is not a number.
LOWEST_SCORE = 1e-12


@dataclass(frozen=True, slots=True)
class BanditOptimum:
    """The best fixed distribution in the limit of many small steps, and what it reaches.

    >>> bandit = MultitaskBandit(
    ...     oracle=np.array([0.5, 0.5]), ceiling=np.ones(2), learning=np.full(2, 0.2),
    ...     forgetting=np.zeros(2), steps=10, cost=np.ones(2),
    ... )
    >>> best = bandit.optimum()  # five pulls of each bring both to 1
    >>> best.probabilities.round(6).tolist(), round(best.score, 6)
    ([0.5, 0.5], 1.0)
    """

    probabilities: NDArray[np.float64]  # [arm]
    score: float  # the mean over arms at the end


@dataclass(frozen=True, slots=True)
class MultitaskBandit:
    """Environments whose best fixed division of the budget is known.

    >>> bandit = MultitaskBandit(
    ...     oracle=np.array([0.25, 0.75]), ceiling=np.array([0.5, 1.0]), learning=np.array([0.2, 0.1]),
    ...     forgetting=np.array([0.0, 0.25]), steps=10, cost=np.ones(2),
    ... )
    >>> bandit.pull(np.array([0.0, 0.5]), np.array(0)).tolist()  # the first learns, then both forget
    [0.2, 0.25]
    """

    oracle: NDArray[np.float64]  # [..., arm], the shares that bring every arm to its ceiling
    ceiling: NDArray[np.float64]  # [..., arm]
    learning: NDArray[np.float64]  # [..., arm], what a pull adds to the arm's score
    forgetting: NDArray[np.float64]  # [..., arm], what every step takes from every arm
    steps: int
    cost: NDArray[np.float64]  # [..., arm], of a pull; 1 in the paper
    transfer: NDArray[np.float64] | None = None  # [..., pulled, arm], in pulls of the arm; None: 0

    @classmethod
    def sample(
        cls,
        generator: np.random.Generator,
        *,
        arms: int = 8,
        concentration: float = 2.0,
        steps: int = 10_000,
        environments: int | None = None,
        transfer: tuple[float, float] = (0.0, 0.0),
        cost: tuple[float, float] = (1.0, 1.0),
    ) -> MultitaskBandit:
        """Environments as the paper draws them, one or a leading axis of `environments`.

        With `transfer` a pull of one arm is worth between so and so many pulls of each other arm,
        below zero where it harms; with `cost` a pull costs between so and so much.
        """
        if arms < 1 or steps < 1 or not concentration > 0:
            raise OptionError(
                "`arms`, `steps` and `concentration` should be above zero. Found "
                f"{arms}, {steps} and {concentration}."
            )
        if not 0 < cost[0] <= cost[1] or not transfer[0] <= transfer[1]:
            raise OptionError(
                "`cost` and `transfer` should be (smallest, largest), and costs above zero. Found "
                f"{cost} and {transfer}."
            )
        leading = () if environments is None else (environments,)
        oracle = generator.dirichlet(np.full(arms, concentration), size=leading or None)
        # A share of a millionth keeps the learning increment finite for a tiny concentration.
        oracle = np.maximum(oracle, 1e-6)
        oracle /= oracle.sum(axis=-1, keepdims=True)
        ceiling = generator.uniform(0.5, 1.0, size=(*leading, arms))
        learning = ceiling / (steps * oracle)
        forgetting = generator.uniform(0.0, 0.01, size=(*leading, arms)) * learning
        matrix = None
        if transfer != (0.0, 0.0):
            matrix = generator.uniform(*transfer, size=(*leading, arms, arms))
            matrix[..., np.arange(arms), np.arange(arms)] = 0.0
        costs = generator.uniform(*cost, size=(*leading, arms))
        return cls(oracle, ceiling, learning, forgetting, steps, costs, matrix)

    def init(self) -> NDArray[np.float64]:
        """The scores [..., arm] before the first pull: all zero."""
        return np.zeros_like(self.ceiling)

    def pull(
        self,
        scores: NDArray[np.float64],  # [..., arm]
        arms: NDArray[np.int64],  # [...], the arm pulled in each environment
    ) -> NDArray[np.float64]:
        """The scores after one step: the pulled arm learns, then every arm forgets."""
        places = np.asarray(arms)[..., None]
        if self.transfer is None:
            learned = scores.copy()
            gained = np.take_along_axis(scores + self.learning, places, axis=-1)
            np.put_along_axis(learned, places, gained, axis=-1)
        else:
            pulls = np.take_along_axis(self.transfer, places[..., None], axis=-2)[..., 0, :]
            pulls = pulls + (np.arange(scores.shape[-1]) == places)
            learned = scores + pulls * self.learning
        forgotten: NDArray[np.float64] = np.minimum(learned, self.ceiling) - self.forgetting
        return np.maximum(forgotten, 0.0)

    @staticmethod
    def losses(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Minus the logarithm of scores of any shape."""
        return np.asarray(-np.log(np.maximum(scores, LOWEST_SCORE)))

    def optimum(self) -> BanditOptimum:
        r"""The best fixed distribution of one environment, forgetting and transfer counted.

        With $v_k$ the pulls of arm k per unit of budget, its score in the limit is the least of its
        ceiling and $T(l_k(v_k + \sum_j v_j \tau_{jk}) - f_k \sum_j v_j)$; the mean of these under
        $\sum_k c_k v_k = 1$ is a linear programme. It exceeds the paper's oracle, whose shares leave
        forgetting out of account.
        """
        from scipy.optimize import linprog

        count = self.oracle.shape[-1]
        pulls = np.eye(count) if self.transfer is None else np.eye(count) + self.transfer
        # Rows: score_k - T (...) <= 0, over the variables (v, score).
        per_pull = self.steps * (self.learning[:, None] * pulls.T - self.forgetting[:, None])
        answer = linprog(
            np.concatenate([np.zeros(count), np.full(count, -1.0 / count)]),
            A_ub=np.hstack([-per_pull, np.eye(count)]),
            b_ub=np.zeros(count),
            A_eq=np.concatenate([self.cost, np.zeros(count)])[None],
            b_eq=[1.0],
            bounds=[(0, None)] * count + [(-1.0, ceiling) for ceiling in self.ceiling],
        )
        visits = np.asarray(answer.x[:count])
        return BanditOptimum(visits / visits.sum(), float(-answer.fun))
