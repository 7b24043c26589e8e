"""Divisions of a budget learned from logs: what they gain over uniform shares.

In `worlds` the truth is known (`World`), and gains are in points of mean performance at the end.
On a folder of tasks runs with uniform shares are logged, each division is learned from them, and both
train again under fresh seeds: gains are in points of the mean test score, paired by seed.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from taskmix.adviser import mean_comparable
from taskmix.counterfactual import Log, improve_policy, log_from_arrays, log_of_runs
from taskmix.engine import Auto, DigitsSource, Executed, FolderSource, Run
from taskmix.models import choose_architecture
from taskmix.numerics import mean_interval
from taskmix.policies import Fixed, HardProgress, Uniform, hard_progress
from taskmix.records import Study

Shares = NDArray[np.float64]
TASKS = 8
STEPS = 4000
NOISE = 0.1  # standard deviation of the performance on one batch
POWER = 1.5  # of the curves; 0.5 to 2 is what training curves have


@dataclass(frozen=True)
class World:
    """Tasks whose best division is known, and how much a visit of each helps the others.

    A task does f(x) = start + (ceiling − start)(1 − (1 + x/(power·visits))^−power) after x visits, which
    falls off as a power of them. With transfer a visit of task j is worth `teaches[j, k]` visits of task
    k. The loss of a step is −log of what the task does, disturbed by the batch; its reward is Eq. 16.
    """

    start: Shares  # [task], performance before the first visit
    ceiling: Shares  # [task]
    visits: Shares  # [task], after which a good half is learned
    teaches: Shares  # [from, to], 1 on the diagonal

    def performance(self, visits: Shares) -> Shares:
        """[..., task], after so many `visits` [..., task] of each."""
        worth = np.maximum(visits @ self.teaches, 0.0)
        learned = 1 - (1 + worth / (POWER * self.visits)) ** -POWER
        return np.asarray(self.start + (self.ceiling - self.start) * learned)

    def points(self, shares: Shares) -> float:
        """The mean performance times 100 at the end of a run with these shares."""
        return 100 * float(self.performance(STEPS * shares).mean())

    def log(self, shares: Shares, generator: np.random.Generator) -> Log:
        tasks = generator.choice(len(shares), size=STEPS, p=shares)
        drawn = np.eye(len(shares))[tasks]
        before = drawn.cumsum(axis=0) - drawn
        every = np.arange(STEPS)
        reached = self.performance(before)[every, tasks]
        seen = np.clip(reached + NOISE * generator.normal(size=STEPS), 0.01, 1.0)
        losses = -np.log(seen)
        previous = np.full(STEPS, np.nan)
        for task in range(len(shares)):
            here = np.flatnonzero(tasks == task)
            previous[here[1:]] = losses[here[:-1]]
        rewards = hard_progress(losses, previous)
        names = [str(task) for task in range(len(shares))]
        return log_from_arrays(tasks, rewards, shares[tasks], losses, names=names)

    def best(self) -> Shares:
        """The shares with the most points, from several starts."""
        count = len(self.start)

        def lack(logits: Shares) -> float:
            return -self.points(_softmax(logits))

        hopeful = self.ceiling - self.start
        starts = [np.zeros(count), np.log(hopeful + 0.01), np.log(self.visits)]
        found = [minimize(lack, at, method="L-BFGS-B") for at in starts]
        return _softmax(min(found, key=lambda each: float(each.fun)).x)


def _softmax(logits: Shares) -> Shares:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def _world(
    generator: np.random.Generator,
    start: Shares,
    ceiling: Shares,
    visits: Shares,
    teaches: tuple[float, float] = (0.0, 0.0),
) -> World:
    matrix = generator.uniform(*teaches, size=(len(start), len(start)))
    np.fill_diagonal(matrix, 1.0)
    return World(start, ceiling, visits, matrix)


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
    return _world(generator, start, ceiling, visits, teaches)


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

DIVISIONS: dict[str, Callable[[Sequence[Log]], Shares]] = {
    "entropy": lambda logs: improve_policy(logs, division="entropy").probabilities,
    "curves": lambda logs: improve_policy(logs, division="curves").probabilities,
    "both": lambda logs: improve_policy(logs, division="both").probabilities,
    "slope": lambda logs: improve_policy(logs, division="entropy", reward="slope").probabilities,
}
LOGS = (1, 3)  # of a world, pooled
FRESH = 500  # the first seed of runs that judge


def measure_worlds(seeds: int, first: int) -> list[dict[str, Any]]:
    """Every division in every world; the last row of each is the best division there is."""
    found = []
    uniform = np.full(TASKS, 1 / TASKS)
    for world, make in WORLDS.items():
        for count in LOGS:
            gains: dict[str, list[float]] = {}
            for seed in range(first, first + seeds):
                generator = np.random.default_rng([seed, count, zlib.crc32(world.encode())])
                tasks = make(generator)
                logs = [tasks.log(uniform, generator) for _ in range(count)]
                learned = {name: learn(logs) for name, learn in DIVISIONS.items()}
                for name, shares in {**learned, "the best": tasks.best()}.items():
                    gain = tasks.points(shares) - tasks.points(uniform)
                    gains.setdefault(name, []).append(gain)
            found += [_row(f"{world}, {count} logs", name, each) for name, each in gains.items()]
            both, entropy = np.array(gains["both"]), np.array(gains["entropy"])
            found.append(_row(f"{world}, {count} logs", "both minus entropy", both - entropy))
    return found


def measure_folder(folder: str, steps: int, rounds: int, seeds: int) -> list[dict[str, Any]]:
    """Every division learned from two logs, so many `rounds`, each judged by so many fresh seeds."""
    source = DigitsSource() if folder == "digits" else FolderSource(path=folder)
    tasks = source.load()
    architecture, _ = choose_architecture("auto", tasks, None, None)
    base = Run(
        label="uniform",
        source=source,
        architecture=architecture,
        policy=Uniform(),
        reward=HardProgress(),
        steps=steps,
        batch_size=32,
        seed=0,
    )
    with tempfile.TemporaryDirectory(prefix="taskmix-benchmark-") as name:
        study = Study(Path(name) / "study")
        logged = [replace(base, seed=seed) for seed in range(2 * rounds)]
        _finished(Auto().run(logged, study))
        runs: dict[tuple[str, int], Run] = {}
        for number in range(rounds):
            pair = logged[2 * number : 2 * number + 2]
            logs = log_of_runs([study.run(run.specification()) for run in pair])
            fresh = range(FRESH + number * seeds, FRESH + (number + 1) * seeds)
            for division, learn in DIVISIONS.items():
                policy = Fixed(tuple(learn(logs).tolist()))
                for seed in fresh:
                    runs[division, seed] = replace(base, label=division, policy=policy, seed=seed)
            for seed in fresh:
                runs["uniform", seed] = replace(base, seed=seed)
        results = _finished(Auto().run(list(runs.values()), study))
        scores = dict(zip(runs, results, strict=True))
    points = {
        key: 100 * mean_comparable(tasks, found, tasks.names) for key, found in scores.items()
    }
    drawn = sorted({seed for _, seed in points})
    gained = {
        name: np.array([points[name, seed] - points["uniform", seed] for seed in drawn])
        for name in DIVISIONS
    }
    gained["both minus entropy"] = gained["both"] - gained["entropy"]
    return [_row(Path(folder).name, name, each) for name, each in gained.items()]


def _finished(results: Sequence[Executed]) -> list[dict[str, float]]:
    """The test score of each task in each run."""
    found = []
    for result in results:
        if result.summary is None:
            raise SystemExit(f"A run did not finish: {result.error}")
        scores = [score for score in result.summary.scores if score.metric != "loss"]
        found.append({score.task: score.value for score in scores if score.split == "test"})
    return found


def _row(case: str, division: str, gains: Sequence[float] | Shares) -> dict[str, Any]:
    gain = mean_interval(np.asarray(gains).tolist())
    return {
        "case": case,
        "division": division,
        "gain": gain.mean,
        "low": gain.low,
        "high": gain.high,
        "n": gain.n,
    }
