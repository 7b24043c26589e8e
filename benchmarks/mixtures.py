"""Forecasts of mixtures on the tables of RegMix: how well losses of mixtures never trained are ranked.

From 16 to 512 proxies of 1 M parameters, drawn at random 20 times, every method predicts the 13 losses
of 256 other mixtures, which were trained at 1 M and at 60 M. Rows have the rank correlation and the
regret (the loss of the mixture that is predicted to be best of the 256, minus the least), both in the
mean over losses, and how many runs at 1 M lie in their 90 % intervals. The peers are boosted trees
(LightGBM, as RegMix has them, stopped early by a fifth of the proxies) and the exponential law; the
better one is the `peer`.

    python benchmarks/mixtures.py [--on test] [--processes 2] [--quick] [--json]

`--on sizes` is about models of several sizes (`_mixture_scales.py`). Tables are read from $TASKMIX_DATA.
"""

from __future__ import annotations

import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import lightgbm
import numpy as np
from scipy.stats import rankdata

from _common import report, row
from _mixture_scales import PROXIES, TEST_1M, TEST_60M, Floats, regmix, rows_across_scales
from taskmix.mixtures import (
    ExponentialLaw,
    forecast_mixtures,
)

COUNTS = (16, 32, 64, 128, 512)
DRAWS = 20
INSIDE = "in 90 % intervals, 1 M"
OURS, TREES, EXPONENTIAL = "stacked laws", "boosted trees", "exponential"


def correlation(predicted: Floats, values: Floats) -> float:
    """The rank correlation in the mean over metrics."""
    first, second = (rankdata(each, axis=0) for each in (predicted, values))
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    lengths = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
    return float(((first * second).sum(axis=0) / lengths).mean())


def regret(predicted: Floats, values: Floats) -> float:
    """In the mean over metrics."""
    chosen = values[predicted.argmin(axis=0), np.arange(values.shape[1])]
    return float((chosen - values.min(axis=0)).mean())


class BoostedTrees:
    """As RegMix has them (Liu et al., ICLR 2025), each metric for itself.

    Their notebook stops early by the test set; here a fifth of the runs decides, and the trees then
    grow on all.
    """

    def __init__(self, shares: Floats, losses: Floats, *, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(shares))
        dev, train = np.split(order, [max(1, round(0.2 * len(order)))])
        options = {
            "objective": "regression",
            "learning_rate": 0.05,
            "min_data_in_leaf": int(np.clip(len(order) // 10, 2, 20)),
            "verbosity": -1,
            "num_threads": 1,
            "seed": seed,
            "deterministic": True,
        }
        self._models = []
        for values in losses.T:
            sets = [lightgbm.Dataset(shares[rows], values[rows]) for rows in (train, dev, order)]
            stop = lightgbm.early_stopping(30, verbose=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                first = lightgbm.train(
                    options, sets[0], 1000, valid_sets=[sets[1]], callbacks=[stop]
                )
                trees = max(first.best_iteration, 1)
                self._models.append(lightgbm.train(options, sets[2], trees))

    def predict(self, shares: Floats) -> Floats:
        return np.stack([np.asarray(model.predict(shares)) for model in self._models], axis=1)


@dataclass(frozen=True)
class Task:
    """One draw of proxies."""

    count: int
    draw: int


def judge(task: Task) -> dict[str, dict[str, float]]:
    """What each method reaches from one draw of proxies."""
    proxies = regmix(PROXIES)
    order = np.random.default_rng((task.count, task.draw)).permutation(len(proxies))
    drawn = proxies.only(order[: task.count])
    tests = {"1 M": regmix(TEST_1M), "60 M": regmix(TEST_60M)}
    forecast = forecast_mixtures(drawn, seed=task.draw)
    fitted: dict[str, Any] = {
        OURS: forecast,
        TREES: BoostedTrees(drawn.shares, drawn.values, seed=task.draw),
        EXPONENTIAL: ExponentialLaw().fit(drawn.shares, drawn.values),
    }
    found: dict[str, dict[str, float]] = {name: {} for name in fitted}
    for name, law in fitted.items():
        for size, test in tests.items():
            predicted = law.predict(test.shares)
            found[name][f"rank correlation, {size}"] = correlation(predicted, test.values)
            found[name][f"regret, {size}"] = regret(predicted, test.values)
    test = tests["1 M"]
    low, high = forecast.interval(test.shares)
    found[OURS][INSIDE] = float(((low <= test.values) & (test.values <= high)).mean())
    return found


def measure(quick: bool, on: str, processes: int) -> list[dict[str, Any]]:
    if on == "sizes":
        return rows_across_scales(quick=quick)
    counts = (16, 64) if quick else COUNTS
    tasks = [Task(count, draw) for count in counts for draw in range(3 if quick else DRAWS)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(judge, tasks))
    rows = []
    for count in dict.fromkeys(task.count for task in tasks):
        some = [found for task, found in zip(tasks, results, strict=True) if task.count == count]
        rows += [compared(count, key, some) for key in some[0][OURS]]
    return rows


def compared(count: int, key: str, some: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """One figure of all methods, in the mean over draws."""
    draws = {
        name: np.array([f[name][key] for f in some]) for name in some[0] if key in some[0][name]
    }
    means = {name: float(values.mean()) for name, values in draws.items()}
    case = f"{count} proxies: {key}"
    if key == INSIDE:
        return row(case, means[OURS], 0.9, "what it should be", "of runs")
    larger = key.startswith("rank")
    peer = (max if larger else min)((TREES, EXPONENTIAL), key=means.__getitem__)
    apart = draws[OURS] - draws[peer]
    error = float(apart.std(ddof=1)) / np.sqrt(len(apart)) if len(apart) > 1 else 0.0
    found = row(case, means[OURS], means[peer], peer, "" if larger else "loss")
    return {**found, "all": means, "standard error of the difference": error}


if __name__ == "__main__":
    report(
        "mixtures",
        measure,
        "Forecasts of mixtures on the tables of RegMix.",
        options={
            "--on": {
                "default": "test",
                "choices": ["test", "sizes"],
                "help": "what is predicted",
            },
            "--processes": {"type": int, "default": 2, "help": "at once"},
        },
    )
