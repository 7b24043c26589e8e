"""What to run next: the regret after as many runs, ours against runs at random and space-filling ones.

Made-up worlds: a law of effective data with noise, of 6 and of 17 domains; the target is the mean of
three losses, the regret is by the true law. Ours is `search_mixtures` until so many runs; the others
draw all their runs at once, from a flat Dirichlet or by `first_mixtures`. The RegMix proxies: 512 runs
are the pool from which batches are chosen and the answer comes; all begin with the same 24 runs at
random, and the regret is the mean loss of the run that is recommended, minus the least in the pool.
All use the same forecast. Rows have means over 20 worlds or beginnings, with 95 % intervals of the
paired difference ours minus peer; `expected` is the regret that ours expected at the end, `within`
the share that came within 1 % of the best of the pool.

    python benchmarks/mixture_designs.py [--on made-up] [--processes 2] [--quick] [--json]

The proxies are read from $TASKMIX_DATA and left out if they are not there.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import csv
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import report, row
from taskmix.mixtures import (
    EffectiveDataLaw,
    MixtureTable,
    StackedForecast,
    estimate_regret,
    first_mixtures,
    forecast_mixtures,
    next_mixtures,
    search_mixtures,
)

Floats = NDArray[np.float64]
WORLDS = 20
OURS, RANDOM, FILLING = "ours", "at random", "space-filling"
SIZES = {6: (12, 24, 4), 17: (34, 50, 8)}  # domains: runs of the first design, of all, of a batch
POOL = (24, 48, 8)


def forecast(table: MixtureTable) -> StackedForecast:
    """One law and the process: a third of the time of all laws."""
    return forecast_mixtures(table, laws=(EffectiveDataLaw(),))


@dataclass(frozen=True, eq=False)
class World:
    """Losses c + (e + s.w)^-a, and noise."""

    worths: Floats  # [loss, domain]
    floors: Floats
    powers: Floats
    levels: Floats
    noise: float = 0.02

    @classmethod
    def draw(cls, domains: int, seed: int) -> World:
        random = np.random.default_rng((domains, seed))
        return cls(
            worths=3 * random.gamma(0.4, size=(3, domains)) + 0.02,
            floors=random.uniform(0.05, 0.3, 3),
            powers=random.uniform(0.2, 0.6, 3),
            levels=random.uniform(1.5, 2.5, 3),
        )

    def law(self, shares: Floats) -> Floats:
        return self.levels + (self.floors + shares @ self.worths.T) ** -self.powers

    def lowest(self) -> float:
        """The mean loss of the best mixture: exponentiated gradient on a convex function."""
        shares = np.full(self.worths.shape[1], 1 / self.worths.shape[1])
        for _ in range(4000):
            data = self.floors + self.worths @ shares
            slopes = -((self.powers * data ** (-self.powers - 1)) @ self.worths) / 3
            shares = shares * np.exp(-2.0 * (slopes - slopes @ shares))
            shares /= shares.sum()
        return float(self.law(shares[None]).mean())


def table_of(shares: Floats, values: Floats) -> MixtureTable:
    return MixtureTable(
        domains=tuple(f"domain {place}" for place in range(shares.shape[1])),
        metrics=tuple(f"loss {place}" for place in range(values.shape[1])),
        runs=tuple(str(place) for place in range(len(shares))),
        shares=shares,
        values=values,
    )


@dataclass(frozen=True)
class Task:
    """One world, or one beginning from the pool where `domains` is 0."""

    domains: int
    seed: int


def judge(task: Task) -> dict[str, float]:
    """The regret by each way, and what ours expected."""
    return judge_pool(task.seed) if task.domains == 0 else judge_world(task.domains, task.seed)


def judge_world(domains: int, seed: int) -> dict[str, float]:
    world, random = World.draw(domains, seed), np.random.default_rng((7, seed))
    first, runs, batch = SIZES[domains]

    def train(shares: Floats) -> Floats:
        losses = world.law(shares)
        return losses + world.noise * random.standard_normal(losses.shape)

    names = tuple(f"domain {place}" for place in range(domains))
    found = search_mixtures(
        train,
        names,
        first=first,
        batch=batch,
        most_runs=runs,
        tolerance=0.0,
        make_forecast=forecast,
        seed=seed,
    )
    chosen = {OURS: found.recommended}
    for name, shares in (
        (RANDOM, random.dirichlet(np.ones(domains), runs)),
        (FILLING, first_mixtures(names, runs, seed=seed).shares),
    ):
        believed = forecast(table_of(shares, train(shares)))
        chosen[name] = estimate_regret(believed, seed=seed).recommended
    lowest = world.lowest()
    regrets = {name: float(world.law(each[None]).mean() - lowest) for name, each in chosen.items()}
    expected = [each.proposed.regret.mean for each in found.rounds]
    return {**regrets, "expected": expected[-1], "runs": len(found.table)}


def judge_pool(seed: int) -> dict[str, float]:
    pool, (first, runs, batch) = read_pool(), POOL
    means = pool.values.mean(axis=1)
    order = np.random.default_rng((11, seed)).permutation(len(pool))
    ways = {RANDOM: order[:runs], FILLING: fill(pool.shares, order[:first], runs)}
    seen = order[:first]
    while True:
        believed = forecast(pool.only(seen))
        if len(seen) >= runs:
            break
        free = np.setdiff1d(np.arange(len(pool)), seen)
        proposed = next_mixtures(
            believed,
            count=batch,
            runs_among=pool.shares[free],
            best_among=pool.shares,
            seed=seed + len(seen),
        )
        assert proposed.taken_from is not None
        seen = np.concatenate([seen, free[list(proposed.taken_from)]])
    found = {}
    for name, places in {OURS: seen, **ways}.items():
        predicted = believed if name == OURS else forecast(pool.only(places))
        chosen = int(predicted.predict(pool.shares).mean(axis=1).argmin())
        found[name] = float(means[chosen] - means.min())
        found[f"within, {name}"] = float(means[chosen] <= 1.01 * means.min())
    expected = estimate_regret(believed, best_among=pool.shares).mean
    return {**found, "expected": expected, "runs": runs}


def fill(shares: Floats, seen: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Runs of the pool, each farthest from all before it, by roots of shares."""
    roots, taken = np.sqrt(shares), list(seen)
    while len(taken) < count:
        apart = np.linalg.norm(roots[:, None] - roots[None, taken], axis=2).min(axis=1)
        taken.append(int(apart.argmax()))
    return np.array(taken)


def read_pool() -> MixtureTable:
    tables = []
    for name in ("ratios", "metrics"):
        with (folder() / f"proxies_1m_{name}.csv").open(newline="") as lines:
            _, *rows = csv.reader(lines)
        tables.append(np.array([[float(cell) for cell in each[1:]] for each in rows]))
    shares, values = tables
    return table_of(shares / shares.sum(axis=1, keepdims=True), values)


def folder() -> Path:
    return Path(os.environ.get("TASKMIX_DATA", "data")) / "regmix"


def measure(quick: bool, on: str, processes: int) -> list[dict[str, Any]]:
    kinds = [*SIZES] if on != "pool" else []
    if on != "made-up" and (folder() / "proxies_1m_ratios.csv").exists():
        kinds.append(0)
    tasks = [Task(kind, seed) for kind in kinds for seed in range(3 if quick else WORLDS)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as workers:
        results = list(workers.map(judge, tasks))
    rows = []
    for kind in kinds:
        some = [found for task, found in zip(tasks, results, strict=True) if task.domains == kind]
        rows += [compared(kind, peer, some) for peer in (RANDOM, FILLING)]
    return rows


def compared(kind: int, peer: str, some: list[dict[str, float]]) -> dict[str, Any]:
    """Ours against a peer, with the interval of the paired difference."""
    ours, theirs = (np.array([each[name] for each in some]) for name in (OURS, peer))
    apart = ours - theirs
    reach = 2.09 * apart.std(ddof=1) / len(apart) ** 0.5  # Student's, for 20
    runs = int(np.mean([each["runs"] for each in some]))
    name = f"{kind} domains" if kind else "RegMix proxies"
    found = row(f"{name}, {runs} runs", float(ours.mean()), float(theirs.mean()), peer, "regret")
    more = {
        "difference": float(apart.mean()),
        "low": float(apart.mean() - reach),
        "high": float(apart.mean() + reach),
        "median_ours": float(np.median(ours)),
        "median_peer": float(np.median(theirs)),
        "expected": float(np.mean([each["expected"] for each in some])),
    }
    if f"within, {OURS}" in some[0]:
        more["within_ours"] = float(np.mean([each[f"within, {OURS}"] for each in some]))
        more["within_peer"] = float(np.mean([each[f"within, {peer}"] for each in some]))
    return {**found, **more}


if __name__ == "__main__":
    report(
        "mixture_designs",
        measure,
        __doc__.splitlines()[0],
        options={
            "--on": {"default": "both", "choices": ["both", "made-up", "pool"], "help": "which"},
            "--processes": {"type": int, "default": 1, "help": "at a time"},
        },
    )
