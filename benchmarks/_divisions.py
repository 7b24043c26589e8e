"""Divisions of a budget learned from logs: what they gain over uniform shares.

In `worlds` the truth is known (`_log_worlds`), and gains are in points of mean performance at the end.
On a folder of tasks runs with uniform shares are logged, each division is learned from them, and both
train again under fresh seeds: gains are in points of the mean test score, paired by seed.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _log_worlds import TASKS, WORLDS
from taskmix.adviser import mean_comparable
from taskmix.counterfactual import Log, improve_policy, log_of_runs
from taskmix.engine import Auto, DigitsSource, Executed, FolderSource, Run
from taskmix.models import choose_architecture
from taskmix.numerics import mean_interval
from taskmix.policies import Fixed, HardProgress, Uniform
from taskmix.records import Study

Shares = NDArray[np.float64]
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


def print_rows(rows: Sequence[dict[str, Any]]) -> None:
    for each in rows:
        print(
            f"{each['case']:30} {each['division']:20} {each['gain']:+7.2f} "
            f"({each['low']:+.2f} to {each['high']:+.2f}), n = {each['n']}"
        )
