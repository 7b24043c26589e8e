"""Logs whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual import Log, log_from_arrays

NAMES = ["a", "b", "c"]


@dataclass(frozen=True)
class Simulated:
    tasks: NDArray[np.int64]  # [row]
    rewards: NDArray[np.float64]  # [row]
    probabilities: NDArray[np.float64]  # [row]
    means: NDArray[np.float64]  # [row, task], the expected reward of every task at every row

    def value(self, policy: NDArray[np.float64]) -> float:
        """What `policy` earns on average over the rows."""
        return float((self.means @ policy).mean())


def simulate(
    generator: np.random.Generator,
    *,
    rows: int = 2000,
    tasks: int = 5,
    drift: float = 0.0,
    floor: float = 0.3,
) -> Simulated:
    """A logger that wanders, and Bernoulli rewards that fall by `drift` over the run."""
    time = np.linspace(0, 1, rows)[:, None]
    phases, swings = generator.uniform(0, 6, tasks), generator.uniform(0.5, 2.0, tasks)
    logits = swings * np.sin(3 * time + phases)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    shares = (1 - floor) * shares + floor / tasks
    means = np.clip(generator.uniform(0.3, 0.9, tasks) - drift * time, 0, 1)
    draws = generator.random((rows, 1)) > shares.cumsum(axis=1)
    chosen = np.minimum(draws.sum(axis=1), tasks - 1)
    every = np.arange(rows)
    rewards = (generator.random(rows) < means[every, chosen]).astype(np.float64)
    return Simulated(chosen, rewards, shares[every, chosen], means)


def learning_log(
    seed: int,
    *,
    rows: int = 4000,
    rates: tuple[float, ...] = (0.002, 0.0003, 0.001),
    shares: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3),
    noise: float = 0.05,
    scale: float = 1.0,
    hard: bool = True,
) -> Log:
    """Tasks that gain `rates` a visit up to one; the reward is what is still missing, or noise."""
    generator = np.random.default_rng(seed)
    tasks = generator.choice(3, size=rows, p=shares)
    visits = np.stack([np.cumsum(tasks == k) for k in range(3)], axis=1)[np.arange(rows), tasks]
    reached = np.minimum(0.05 + np.array(rates)[tasks] * visits, 1.0)
    seen = np.clip(reached + noise * generator.normal(size=rows), 0.01, 1.0)
    rewards = scale * ((1 - reached) if hard else generator.random(rows))
    return log_from_arrays(tasks, rewards, np.array(shares)[tasks], -np.log(seen), names=NAMES)
