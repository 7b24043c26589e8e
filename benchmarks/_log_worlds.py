"""Simulated tasks whose best division of a budget is known, and logs of training on them.

A task does f(x) = start + (ceiling − start)(1 − (1 + x/(power·visits))^−power) after x visits, a curve
that falls off as a power of them. With transfer a visit of task j is worth `teaches[j, k]` visits of
task k. The loss of a step is −log of what the task does, disturbed by the batch; its reward is Eq. 16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from taskmix.counterfactual import Log, log_from_arrays
from taskmix.policies import hard_progress

TASKS = 8
POWER = 1.5  # of the curves; 0.5 to 2 is what training curves have


@dataclass(frozen=True)
class World:
    """Tasks, and how much a visit of each helps the others."""

    start: NDArray[np.float64]  # [task], performance before the first visit
    ceiling: NDArray[np.float64]  # [task]
    visits: NDArray[np.float64]  # [task], after which a good half is learned
    teaches: NDArray[np.float64]  # [from, to], 1 on the diagonal
    steps: int
    noise: float  # standard deviation of the performance on one batch

    def performance(self, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        """[..., task], after so many `visits` [..., task] of each."""
        worth = np.maximum(visits @ self.teaches, 0.0)
        learned = 1 - (1 + worth / (POWER * self.visits)) ** -POWER
        return np.asarray(self.start + (self.ceiling - self.start) * learned)

    def points(self, shares: NDArray[np.float64]) -> float:
        """The mean performance times 100 at the end of a run with these shares."""
        return 100 * float(self.performance(self.steps * shares).mean())

    def log(self, shares: NDArray[np.float64], generator: np.random.Generator) -> Log:
        tasks = generator.choice(len(shares), size=self.steps, p=shares)
        drawn = np.eye(len(shares))[tasks]
        before = drawn.cumsum(axis=0) - drawn
        every = np.arange(self.steps)
        reached = self.performance(before)[every, tasks]
        seen = np.clip(reached + self.noise * generator.normal(size=self.steps), 0.01, 1.0)
        losses = -np.log(seen)
        previous = np.full(self.steps, np.nan)
        for task in range(len(shares)):
            here = np.flatnonzero(tasks == task)
            previous[here[1:]] = losses[here[:-1]]
        rewards = hard_progress(losses, previous)
        names = [str(task) for task in range(len(shares))]
        return log_from_arrays(tasks, rewards, shares[tasks], losses, names=names)

    def best(self) -> NDArray[np.float64]:
        """The shares with the most points, from several starts."""
        count = len(self.start)

        def lack(logits: NDArray[np.float64]) -> float:
            return -self.points(_softmax(logits))

        hopeful = self.ceiling - self.start
        starts = [np.zeros(count), np.log(hopeful + 0.01), np.log(self.visits)]
        found = [minimize(lack, at, method="L-BFGS-B") for at in starts]
        return _softmax(min(found, key=lambda each: float(each.fun)).x)


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


Numbers = NDArray[np.float64]


def _world(
    generator: np.random.Generator,
    start: Numbers,
    ceiling: Numbers,
    visits: Numbers,
    *,
    teaches: tuple[float, float] = (0.0, 0.0),
    steps: int = 4000,
    noise: float = 0.1,
) -> World:
    matrix = generator.uniform(*teaches, size=(len(start), len(start)))
    np.fill_diagonal(matrix, 1.0)
    return World(start, ceiling, visits, matrix, steps, noise)


def hard_learned(generator: np.random.Generator) -> World:
    """Four hard tasks learn no more, four that are half-way still do."""
    low, high = generator.uniform(0.05, 0.1, TASKS), generator.uniform(0.85, 0.95, TASKS)
    hard = np.arange(TASKS) < TASKS // 2
    ceiling = np.where(hard, generator.uniform(0.3, 0.45, TASKS), high)
    visits = np.where(hard, generator.uniform(10, 30, TASKS), generator.uniform(300, 900, TASKS))
    return _world(generator, low, ceiling, visits)


def easy_learning(generator: np.random.Generator) -> World:
    """Two easy tasks still learn, six that are harder are learned already."""
    easy = np.arange(TASKS) < 2
    start = np.where(easy, generator.uniform(0.4, 0.5, TASKS), generator.uniform(0.1, 0.2, TASKS))
    ceiling = np.where(easy, 0.98, generator.uniform(0.4, 0.6, TASKS))
    visits = np.where(easy, generator.uniform(600, 1500, TASKS), generator.uniform(10, 40, TASKS))
    return _world(generator, start, ceiling, visits)


def nothing_learned(generator: np.random.Generator) -> World:
    """Tasks that learn nothing, some harder than others."""
    level = generator.uniform(0.2, 0.8, TASKS)
    return _world(generator, level, level, np.ones(TASKS))


def equal(generator: np.random.Generator) -> World:
    """Tasks that are all alike."""
    return _world(
        generator,
        np.full(TASKS, 0.1),
        np.full(TASKS, 0.9),
        np.full(TASKS, generator.uniform(200, 800)),
    )


def mixed(generator: np.random.Generator, teaches: tuple[float, float] = (0.0, 0.0)) -> World:
    """All kinds of tasks."""
    start = generator.uniform(0.05, 0.4, TASKS)
    ceiling = start + (0.97 - start) * generator.uniform(0.1, 1.0, TASKS)
    visits = np.exp(generator.uniform(np.log(20), np.log(2000), TASKS))
    return _world(generator, start, ceiling, visits, teaches=teaches)


def teaching(generator: np.random.Generator) -> World:
    """All kinds of tasks, whose visits help the others by up to a third of a visit."""
    return mixed(generator, (0.0, 0.33))


def quarrelling(generator: np.random.Generator) -> World:
    """All kinds of tasks, whose visits mostly harm the others."""
    return mixed(generator, (-0.1, 0.05))


WORLDS: dict[str, Callable[[np.random.Generator], World]] = {
    "hard tasks learned": hard_learned,
    "easy tasks learning": easy_learning,
    "nothing learned": nothing_learned,
    "equal": equal,
    "mixed": mixed,
    "teaching": teaching,
    "quarrelling": quarrelling,
}
