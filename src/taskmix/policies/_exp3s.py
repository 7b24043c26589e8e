r"""Exp3.S: exponential weights that share a little between arms, so that a late riser is noticed.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 5, after Graves,
    Bellemare and Menick, "Automated Curriculum Learning for Neural Networks", 2017, Eqs. 3 and 4.

The paper's $\epsilon$, $\eta$ and $\beta$ (of Graves et al.) are `epsilon`, `eta` and `beta`; its
$\alpha_t$ is `alpha`, or $1/t$ where that is None; $\omega_{t,k}$ is `log_weights[k]` minus a constant
that no probability depends on; $\rho_t$ is `softmax(log_weights)` and $\pi_t$ is `probabilities`.

The sum over all other arms needs no N×N matrix and no difference of large numbers. With
$l_k = \omega_{t-1,k} + \eta\tilde r_{t-1,k}$ and $L = \log\sum_j e^{l_j}$, Eq. 5 is

$$\omega_{t,k} = \log\left[\left(1 - \tfrac{N}{N-1}\alpha_t\right)e^{l_k}
               + \tfrac{\alpha_t}{N-1}e^{L}\right].$$

The first update is that from $t = 1$ to $t = 2$, so $\alpha_1 = 1$, whose logarithm of zero is the
trap of this formula, is never used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.numerics import mix_uniform, softmax
from taskmix.policies._exp3 import LARGEST_STEP
from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes, draw, typed_as
from taskmix.policies._reward import finite_reward
from taskmix.policies._shares import checked_sizes

SMALLEST_PROPENSITY = 1e-300  # a bounded number divided by it is still a float64


@dataclass(frozen=True, slots=True)
class Exp3SState:
    """What Exp3.S has learned.

    >>> state = Exp3S().init(np.array([10, 10]))
    >>> state.log_weights.tolist(), state.updates
    ([0.0, 0.0], 0)
    """

    log_weights: NDArray[np.float64]  # [task], the largest is zero
    updates: int = 0  # the paper's t − 1


@typed_as("exp3s", "eta", "epsilon", "propensity")
@dataclass(frozen=True, slots=True, kw_only=True)
class Exp3S:
    """For rewards in [-1, 1], such as `QuantileScaled` gives; a step without one teaches nothing.

    `propensity` says what a reward is divided by. "policy" is the paper's ρ, before the uniform part
    is mixed in; ρ of an unlucky arm falls to about 1/(tN), so one reward can lift it past all others.
    "mixture" is the probability the arm was really drawn with, as Graves et al. have it: the estimate
    is then unbiased and never larger than N/ε.

    >>> policy = Exp3S(eta=0.1)
    >>> state = policy.init(np.array([10, 10, 10]))
    >>> good = Outcome(Choice(task=0, probability=1 / 3), loss=0.7, reward=1.0)
    >>> policy.probabilities(policy.update(state, good)).round(3).tolist()
    [0.35, 0.325, 0.325]
    """

    epsilon: float = 0.05
    eta: float = 1e-3
    alpha: float | None = None  # None: 1/t, as in the paper
    beta: float = 0.0  # a bonus to every arm at every step; zero in the paper
    propensity: Literal["policy", "mixture"] = "policy"

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 1:
            raise OptionError(
                f"`epsilon` should lie above 0 and not above 1. Found {self.epsilon}. Without a "
                "uniform part a task may never be drawn again, nor judged from the log."
            )
        if not (math.isfinite(self.eta) and self.eta > 0):
            raise OptionError(f"`eta` should be above zero. Found {self.eta}.")
        if self.alpha is not None and not 0 <= self.alpha <= 0.5:
            raise OptionError(
                f"`alpha` should lie between 0 and 0.5, or be None for 1/t. Found {self.alpha}."
            )
        if not (math.isfinite(self.beta) and self.beta >= 0):
            raise OptionError(f"`beta` should not be negative. Found {self.beta}.")
        if self.propensity not in ("policy", "mixture"):
            raise OptionError(
                f'`propensity` should be "policy" or "mixture". Found {self.propensity!r}.'
            )

    def init(self, sizes: Sizes) -> Exp3SState:
        return Exp3SState(np.zeros(len(checked_sizes(sizes))))

    def probabilities(self, state: Exp3SState) -> Probabilities:
        weights: Probabilities = np.exp(state.log_weights)
        weights *= (1 - self.epsilon) / weights.sum()  # ρ, then π = (1 - ε) ρ + ε / N (Eq. 5)
        weights += self.epsilon / len(weights)
        return weights

    def select(self, state: Exp3SState, generator: np.random.Generator) -> Choice:
        return draw(self.probabilities(state), generator)

    def update(self, state: Exp3SState, outcome: Outcome) -> Exp3SState:
        reward = finite_reward(outcome)
        if reward is None:
            return state
        task, log_weights = outcome.choice.task, state.log_weights
        if self.beta == 0:  # only one arm moves, at a third of the cost
            moved = log_weights.copy()
            moved[task] += self._step(log_weights, task, reward)
        else:
            rewards = np.zeros(len(log_weights))
            rewards[task] = reward
            moved = lift_weights(log_weights, rewards, options=self)
        alpha = 1.0 / (state.updates + 2) if self.alpha is None else self.alpha
        return Exp3SState(share_weights(moved, alpha=alpha), state.updates + 1)

    def _step(self, log_weights: NDArray[np.float64], task: int, reward: float) -> float:
        weights = np.exp(log_weights)
        propensity = float(weights[task] / weights.sum())
        if self.propensity == "mixture":
            propensity = (1 - self.epsilon) * propensity + self.epsilon / len(weights)
        step = min(max(self.eta * reward, -LARGEST_STEP), LARGEST_STEP) / max(
            propensity, SMALLEST_PROPENSITY
        )
        return min(max(step, -LARGEST_STEP), LARGEST_STEP)


def lift_weights(
    log_weights: NDArray[np.float64],  # [..., task]
    rewards: NDArray[np.float64],  # [..., task], zero but for the chosen task
    *,
    options: Exp3S,
) -> NDArray[np.float64]:
    """The $l$ of Eq. 5 for any number of runs at once.

    >>> lift_weights(np.zeros(2), np.array([1.0, 0.0]), options=Exp3S(eta=0.1)).tolist()  # 0.1 / (1/2)
    [0.2, 0.0]
    """
    propensities = softmax(log_weights)
    if options.propensity == "mixture":
        propensities = mix_uniform(propensities, options.epsilon)
    # Cut off before the division as well: the paper's ρ may be too small for a float, and a bounded
    # number over SMALLEST_PROPENSITY is still finite.
    steps = (options.eta * (rewards + options.beta)).clip(-LARGEST_STEP, LARGEST_STEP)
    steps = (steps / np.maximum(propensities, SMALLEST_PROPENSITY)).clip(
        -LARGEST_STEP, LARGEST_STEP
    )
    return np.asarray(log_weights + steps)


def share_weights(
    moved: NDArray[np.float64],  # [..., task], the l of Eq. 5
    *,
    alpha: float,
) -> NDArray[np.float64]:
    """The log weights of Eq. 5 after the arms have shared; the largest is zero.

    >>> weights = np.exp(share_weights(np.log([0.5, 0.25, 0.25]), alpha=0.2))
    >>> (weights / weights.sum()).round(6).tolist()  # 0.8 * 0.5 + 0.1 * (0.25 + 0.25), and so on
    [0.45, 0.275, 0.275]
    """
    count = moved.shape[-1]
    if count == 1:
        return np.zeros_like(moved)  # no other arm to share with, and nothing to choose
    moved = moved - moved.max(axis=-1, keepdims=True)
    if alpha == 0:
        return moved
    weights = np.exp(moved)
    share = alpha / (count - 1)
    # Both terms are positive, and the second keeps the logarithm finite.
    mixed = np.log((1 - count * share) * weights + share * weights.sum(axis=-1, keepdims=True))
    return np.asarray(mixed - mixed.max(axis=-1, keepdims=True))
