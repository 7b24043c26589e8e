r"""Exp3.S: exponential weights that share a little between arms, so that a late riser is noticed.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 5, after Graves,
    Bellemare and Menick, "Automated Curriculum Learning for Neural Networks", 2017, Eqs. 3 and 4.

The paper's $\epsilon$, $\eta$ and $\beta$ (of Graves et al.) are `epsilon`, `eta` and `beta`; its
$\alpha_t$ is `alpha`, or $1/t$ where that is None; $\omega_{t,k}$ is `log_weights[k]` less a constant
that no probability depends on; $\rho_t$ is `softmax(log_weights)` and $\pi_t$ is `probabilities`.

The sum over all other arms needs no N×N matrix and no difference of exponentials. With
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
from taskmix.policies._policy import Choice, Outcome, Probabilities, Sizes, draw
from taskmix.policies._reward import finite_reward
from taskmix.policies._shares import checked_sizes

SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class Exp3SState:
    log_weights: NDArray[np.float64]  # [task], the largest is zero
    updates: int = 0  # the paper's t − 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exp3S:
    """For rewards in [-1, 1], such as `QuantileScaled` gives; a step without one teaches nothing.

    `propensity` says what a reward is divided by. "policy" is the paper's ρ, before the uniform part
    is mixed in; ρ of an unlucky arm falls to about 1/(tN), so one reward can lift it past all others.
    "mixture" is the probability the arm was really drawn with, as Graves et al. have it: the estimate
    is then unbiased and never larger than N/ε.
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
        return mix_uniform(softmax(state.log_weights), self.epsilon)

    def select(self, state: Exp3SState, generator: np.random.Generator) -> Choice:
        return draw(self.probabilities(state), generator)

    def update(self, state: Exp3SState, outcome: Outcome) -> Exp3SState:
        reward = finite_reward(outcome)
        if reward is None:
            return state
        estimates = np.zeros(len(state.log_weights))
        estimates[outcome.choice.task] = reward
        log_weights = share_weights(
            state.log_weights,
            estimates,
            alpha=1.0 / (state.updates + 2) if self.alpha is None else self.alpha,
            options=self,
        )
        return Exp3SState(log_weights, state.updates + 1)


def share_weights(
    log_weights: NDArray[np.float64],  # [..., task]
    rewards: NDArray[np.float64],  # [..., task], zero but for the chosen task
    *,
    alpha: float,
    options: Exp3S,
) -> NDArray[np.float64]:
    """Eq. 5 for any number of runs at once; the largest of the new log weights is zero."""
    count = log_weights.shape[-1]
    if count == 1:
        return np.zeros_like(log_weights)  # no other arm to share with, and nothing to choose
    propensities = softmax(log_weights)
    if options.propensity == "mixture":
        propensities = mix_uniform(propensities, options.epsilon)
    # Cut off before the division as well: the paper's ρ may be too small for a float, and a bounded
    # number over SMALLEST is still finite.
    steps = (options.eta * (rewards + options.beta)).clip(-LARGEST_STEP, LARGEST_STEP)
    steps = (steps / np.maximum(propensities, SMALLEST)).clip(-LARGEST_STEP, LARGEST_STEP)
    moved = log_weights + steps
    moved -= moved.max(axis=-1, keepdims=True)
    total = np.log(np.exp(moved).sum(axis=-1, keepdims=True))
    kept = 1.0 - alpha * count / (count - 1)
    mixed = np.logaddexp(moved + _log(kept), total + _log(alpha / (count - 1)))
    return np.asarray(mixed - mixed.max(axis=-1, keepdims=True))


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf
