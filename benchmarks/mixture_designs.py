"""What to run next: the regret after as many runs, ours against runs at random and space-filling ones.

Made-up worlds: a law of effective data with noise, of 6 and of 17 domains; the target is the mean of
three losses, the regret is by the true law. Ours is `search_mixtures` until so many runs; the others
draw all their runs at once, from a flat Dirichlet or by `first_mixtures`. All use the same forecast.
Rows have means over 20 worlds, with 95 % intervals of the paired difference ours minus peer; `expected`
is the regret that ours expected at the end. `mixture_search.py` asks real runs.

    python benchmarks/mixture_designs.py [--processes 2] [--quick] [--json]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
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
    search_mixtures,
)

Floats = NDArray[np.float64]
WORLDS = 20
OURS, RANDOM, FILLING = "ours", "at random", "space-filling"
SIZES = {6: (12, 24, 4), 17: (34, 50, 8)}  # domains: runs of the first design, of all, of a batch


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
    """One world."""

    domains: int
    seed: int


def judge(task: Task) -> dict[str, float]:
    """The regret by each way, and what ours expected."""
    domains, seed = task.domains, task.seed
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


def measure(quick: bool, processes: int) -> list[dict[str, Any]]:
    tasks = [Task(domains, seed) for domains in SIZES for seed in range(3 if quick else WORLDS)]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as workers:
        results = list(workers.map(judge, tasks))
    rows = []
    for domains in SIZES:
        some = [
            found for task, found in zip(tasks, results, strict=True) if task.domains == domains
        ]
        rows += [compared(domains, peer, some) for peer in (RANDOM, FILLING)]
    return rows


def compared(domains: int, peer: str, some: list[dict[str, float]]) -> dict[str, Any]:
    """Ours against a peer, with the interval of the paired difference."""
    ours, theirs = (np.array([each[name] for each in some]) for name in (OURS, peer))
    apart = ours - theirs
    reach = 2.09 * apart.std(ddof=1) / len(apart) ** 0.5  # Student's, for 20
    runs = int(np.mean([each["runs"] for each in some]))
    case = f"{domains} domains, {runs} runs"
    found = row(case, float(ours.mean()), float(theirs.mean()), peer, "regret")
    more = {
        "difference": float(apart.mean()),
        "low": float(apart.mean() - reach),
        "high": float(apart.mean() + reach),
        "median_ours": float(np.median(ours)),
        "median_peer": float(np.median(theirs)),
        "expected": float(np.mean([each["expected"] for each in some])),
    }
    return {**found, **more}


if __name__ == "__main__":
    report(
        "mixture_designs",
        measure,
        __doc__.splitlines()[0],
        options={
            "--processes": {"type": int, "default": 1, "help": "at a time"},
        },
    )
