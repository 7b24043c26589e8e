r"""The multitask bandit: arms that are learned when pulled, are forgotten when not, and have an end.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 4.1.

The paper's $\pi^{oracle}$ is `oracle`, MaxP is `ceiling`, LI is `learning`, FI is `forgetting`, T is
`steps` and $\alpha^{MTL}$ is `concentration`. A score is a probability, so the loss of an arm is minus
its logarithm. All arrays may have leading axes: one call then moves many environments at once.

Beyond the paper: a pull of one arm may teach or harm others (`transfer`), and arms may differ in what
a pull costs (`cost`); with the defaults neither changes anything.

`play_fixed` and `play_exp3s` play many runs at once, each with a column, or a row, in every array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from taskmix.errors import OptionError
from taskmix.numerics import mix_uniform, softmax
from taskmix.policies import Exp3S, hard_progress, lift_weights, share_weights

# A score of zero has an infinite loss, and the difference of two such is not a number.
LOWEST_SCORE = 1e-12


RESERVOIR = 1000  # rewards that Eq. 6 takes its quantiles from


@dataclass(frozen=True, slots=True)
class BanditOptimum:
    """The best fixed distribution in the limit of many small steps, and what it reaches."""

    probabilities: NDArray[np.float64]  # [arm]
    score: float  # the mean over arms at the end


@dataclass(frozen=True, slots=True)
class MultitaskBandit:
    """Environments whose best fixed division of the budget is known."""

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


@dataclass(frozen=True, slots=True)
class Plays:
    """Logs of runs with the same budget; where pulls differ in cost, some runs are over sooner."""

    tasks: NDArray[np.int64]  # [step, run]
    probabilities: NDArray[np.float64]  # [step, run], that the task was drawn with
    losses: NDArray[np.float64]  # [step, run], before the pull
    rewards: NDArray[np.float64]  # [step, run], Eq. 16 per unit of cost; NaN at first visits
    curve: NDArray[np.float64]  # [point, run], the mean score over arms
    steps: NDArray[np.int64]  # [point], after which the curve was taken
    lengths: NDArray[
        np.int64
    ]  # [run], the steps until the budget was spent; later rows mean nothing
    arms: int


class _Recorder:
    """Plays one step of every run, and remembers it."""

    def __init__(self, bandit: MultitaskBandit, points: int) -> None:
        runs, self._arms = bandit.oracle.shape
        self._bandit = bandit
        self._scores = bandit.init()
        self._previous = np.full((runs, self._arms), np.nan)
        self._every = np.arange(runs)
        self.steps = most_steps(bandit)
        self._left = np.full(runs, float(bandit.steps))
        self._lengths = np.zeros(runs, dtype=np.int64)
        self._tasks = np.empty((self.steps, runs), dtype=np.int64)
        self._columns = np.empty((3, self.steps, runs))
        self._points = np.linspace(0, self.steps, points + 1).astype(np.int64)[1:]
        self._curve = np.empty((points, runs))
        self._point = 0

    def pull(
        self, step: int, probabilities: NDArray[np.float64], generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Draws an arm for each run; the arms, and by how much the loss of each fell."""
        cumulative = probabilities.cumsum(axis=-1)
        places = generator.random((len(self._every), 1)) * cumulative[:, -1:]
        arms = np.minimum((cumulative <= places).sum(axis=-1), self._arms - 1)
        before = self._bandit.losses(self._scores[self._every, arms])
        cost = self._bandit.cost[self._every, arms]
        playing = self._left > 0
        after_pull = self._bandit.pull(self._scores, arms)
        self._scores = np.where(playing[:, None], after_pull, self._scores)
        self._left -= cost
        self._lengths += playing
        after = self._bandit.losses(self._scores[self._every, arms])
        previous = self._previous[self._every, arms]
        self._tasks[step] = arms
        self._columns[:, step] = (
            probabilities[self._every, arms],
            before,
            hard_progress(before, previous) / cost,
        )
        self._previous[self._every, arms] = before
        if step + 1 == self._points[self._point]:
            self._curve[self._point] = self._scores.mean(axis=-1)
            self._point = min(self._point + 1, len(self._points) - 1)
        return arms, (before - after) / cost

    @property
    def spent(self) -> NDArray[np.float64]:
        """[run], of the budget so far."""
        return self._bandit.steps - self._left

    def plays(self) -> Plays:
        probabilities, losses, rewards = self._columns
        return Plays(
            self._tasks,
            probabilities,
            losses,
            rewards,
            self._curve,
            self._points,
            self._lengths,
            self._arms,
        )


def most_steps(bandit: MultitaskBandit) -> int:
    """The steps of a run that pulls nothing but its cheapest arm."""
    return max(int(np.ceil(bandit.steps / bandit.cost.min())), 1)


def play_fixed(
    bandit: MultitaskBandit,  # [run, arm]
    shares: NDArray[np.float64],  # [run, arm], or [stage, run, arm] for equal stages of the budget
    *,
    generator: np.random.Generator,
    points: int = 100,
) -> Plays:
    """Every run with its own shares."""
    stages = shares if shares.ndim == 3 else shares[None]
    recorder, every = _Recorder(bandit, points), np.arange(len(bandit.oracle))
    for step in range(recorder.steps):
        stage = (recorder.spent * len(stages) // bandit.steps).astype(np.int64)
        recorder.pull(step, stages[np.minimum(stage, len(stages) - 1), every], generator)
    return recorder.plays()


def play_exp3s(
    bandit: MultitaskBandit,  # [run, arm]
    *,
    generator: np.random.Generator,
    points: int = 100,
    options: Exp3S | None = None,
    reservoir: int = RESERVOIR,
) -> Plays:
    """Exp3.S on prediction gain scaled by its quantiles (Eqs. 5 and 6), every run on its own."""
    policy = options or Exp3S()
    runs, arms = bandit.oracle.shape
    every = np.arange(runs)
    log_weights = np.zeros((runs, arms))
    scaler = _Scaler(runs, reservoir)
    recorder = _Recorder(bandit, points)
    for step in range(recorder.steps):
        probabilities = mix_uniform(softmax(log_weights), policy.epsilon)
        chosen, gains = recorder.pull(step, probabilities, generator)
        rewards = np.zeros((runs, arms))
        rewards[every, chosen] = scaler.scale(gains, generator)
        alpha = 1.0 / (step + 2) if policy.alpha is None else policy.alpha
        log_weights = share_weights(lift_weights(log_weights, rewards, options=policy), alpha=alpha)
    return recorder.plays()


class _Scaler:
    """Eq. 6 for many runs: a sorted sample of each run's rewards, as in `QuantileScaled`."""

    def __init__(self, runs: int, reservoir: int) -> None:
        self._values = np.full((runs, reservoir), np.inf)
        self._every = np.arange(runs)
        self._seen = 0

    def scale(
        self, rewards: NDArray[np.float64], generator: np.random.Generator
    ) -> NDArray[np.float64]:
        filled = min(self._seen, self._values.shape[1])
        if filled:
            low, high = (self._quantile(share, filled) for share in (0.2, 0.8))
            width = np.where(high > low, high - low, 1.0)
            scaled = np.clip(2 * (rewards - low) / width - 1, -1.0, 1.0)
            # Where the quantiles agree, the equation's first two cases still hold.
            scaled = np.where(high > low, scaled, np.sign(rewards - low))
            scaled[self._values[:, 0] == self._values[:, filled - 1]] = 0.0
        else:
            scaled = np.zeros_like(rewards)
        self._remember(rewards, filled, generator)
        return np.asarray(scaled)

    def _quantile(self, share: float, filled: int) -> NDArray[np.float64]:
        place = share * (filled - 1)
        below = int(place)
        above = min(below + 1, filled - 1)
        low, high = self._values[:, below], self._values[:, above]
        return np.asarray(low + (place - below) * (high - low))

    def _remember(
        self, rewards: NDArray[np.float64], filled: int, generator: np.random.Generator
    ) -> None:
        capacity = self._values.shape[1]
        if filled < capacity:
            runs, places = self._every, np.full(len(rewards), filled)
        else:
            drawn = generator.integers(self._seen + 1, size=len(rewards))
            runs = np.flatnonzero(drawn < capacity)
            places = drawn[runs]
        if len(runs):
            changed = self._values[runs]
            changed[np.arange(len(runs)), places] = rewards[runs]
            changed.sort(axis=-1)
            self._values[runs] = changed
        self._seen += 1
