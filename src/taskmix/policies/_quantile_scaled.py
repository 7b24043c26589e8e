r"""Rewards scaled to [-1, 1] by the quantiles of their own history.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Eq. 6, after Graves,
    Bellemare and Menick, "Automated Curriculum Learning for Neural Networks", 2017, Section 3.

The paper's $\hat r_t$ is the reward of `reward`, its $q^{20}_t$ and $q^{80}_t$ are the `low` and `high`
quantiles of the rewards before this one, held as a uniform sample of at most `reservoir` of them
(Vitter, "Random Sampling with a Reservoir", 1985, Algorithm R).

Most rewards may be the same, as they are where few steps gain anything. Then the two quantiles agree
and the equation's third case is 0 / 0; its first two still hold, so what is smaller is -1 and what is
larger is 1, and what is equal is 0. Rewards that were all the same so far are no scale: all are 0.

The sample is kept in order: a uniformly random place of the ordered sample is a uniformly random
member, so the replacement needs no other bookkeeping and a quantile costs two look-ups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.errors import OptionError
from taskmix.numerics import quantile_of_sorted
from taskmix.policies._policy import Outcome
from taskmix.policies._reward import AnyReward, steps_without_draws


@dataclass(frozen=True, slots=True)
class QuantileScaledState:
    inner: Any  # the state of the reward that is scaled
    values: NDArray[np.float64]  # [member], ascending
    seen: int = 0  # rewards so far


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileScaled:
    """`reward` on a scale where its 20th percentile is −1 and its 80th is 1, cut off beyond.

    While all rewards were the same, or the two quantiles lie closer than a `floor` above 0, there is no
    scale and the result is 0: without a floor, a plateau of the loss blows its noise up to the whole of
    [-1, 1].

    >>> scaled, generator = QuantileScaled(reward=PredictionGain()), np.random.default_rng(0)
    >>> state, rewards = scaled.init(1), []
    >>> for gain in (0.0, 1.0, 9.0):
    ...     outcome = Outcome(Choice(0, 1.0), loss=gain, loss_after=0.0)
    ...     reward, state = scaled.observe(state, outcome, generator)
    ...     rewards.append(reward)
    >>> rewards
    [0.0, 0.0, 1.0]
    """

    reward: AnyReward
    low: float = 0.2
    high: float = 0.8
    reservoir: int = 1000
    floor: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise OptionError(
                "`low` and `high` should be shares of the rewards, `low` the smaller. Found "
                f"{self.low} and {self.high}."
            )
        if self.reservoir < 2:
            raise OptionError(
                f"`reservoir` should hold at least 2 rewards. Found {self.reservoir}."
            )
        if not (math.isfinite(self.floor) and self.floor >= 0):
            raise OptionError(f"`floor` should not be negative. Found {self.floor}.")

    @property
    def needs_loss_after(self) -> bool:
        return self.reward.needs_loss_after

    @property
    def steps_without_draws(self) -> float:
        """Until the reservoir is full, nothing has to give way."""
        return min(self.reservoir, steps_without_draws(self.reward))

    def init(self, task_count: int) -> QuantileScaledState:
        return QuantileScaledState(self.reward.init(task_count), np.empty(0))

    def observe(
        self, state: QuantileScaledState, outcome: Outcome, generator: np.random.Generator
    ) -> tuple[float | None, QuantileScaledState]:
        raw, inner = self.reward.observe(state.inner, outcome, generator)
        if raw is None or math.isnan(raw):
            return None, QuantileScaledState(inner, state.values, state.seen)
        values = self._remember(state, raw, generator)
        return self._scale(state.values, raw), QuantileScaledState(inner, values, state.seen + 1)

    def _scale(self, values: NDArray[np.float64], raw: float) -> float:
        if len(values) == 0 or values[0] == values[-1]:
            return 0.0
        low, high = quantile_of_sorted(values, self.low), quantile_of_sorted(values, self.high)
        if high - low < self.floor or low == raw == high:
            return 0.0
        if raw <= low or raw >= high:
            return -1.0 if raw < high else 1.0
        if math.isinf(high - low):  # two numbers that are not: their halves have a difference
            raw, low, high = raw / 2, low / 2, high / 2
        return 2 * ((raw - low) / (high - low)) - 1

    def _remember(
        self, state: QuantileScaledState, raw: float, generator: np.random.Generator
    ) -> NDArray[np.float64]:
        # An infinite gain (from a probability of zero) is the largest, and still has to have a place.
        value = min(max(raw, -np.finfo(np.float64).max), np.finfo(np.float64).max)
        kept = state.values
        if len(kept) == self.reservoir:
            place = int(generator.integers(state.seen + 1))
            if place >= self.reservoir:
                return kept
            kept = np.delete(kept, place)
        return np.insert(kept, int(kept.searchsorted(value)), value)
