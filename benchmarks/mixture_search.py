"""Runs until one within 1 % of the best mixture is trained: ours against random and three peers.

The oracle is RegMix's proxies: 512 runs of 17 domains with 13 losses. A search names one that it has
not made yet and is told its losses. Targets are the mean of the losses, and the 1st, 5th and 9th loss by
itself; about 1 % of the runs are within 1 % of the least. In each of 20 repeats all begin with the same
16 runs at random. Ours then takes batches of 4 by `next_mixtures`, and so does LightGBM: the best by
boosted trees fitted to all runs so far (RegMix's way, again and again). A batch counts as a whole.
Optuna (TPE), BoTorch (what Ax uses) and runs at random go one by one, which favours them. They are told
the target only; of the mean, ours and LightGBM are told its 13 losses, and in "told as one number" not.

The mean is an easy target: the two most even mixtures of the pool are good, so that the four most even,
without any model, need 20 runs in every repeat as well. Single losses tell more (there, 70 to 111).

Rows have mean runs, a search that has found none before 128 counting as 128, medians, the share that
found one, and the paired difference ours minus peer with its 95 % interval over repeats. "All targets"
has the mean over targets of each repeat, without "told as one number".

    python benchmarks/mixture_search.py [--processes 2] [--quick] [--json]

The proxies are read from $TASKMIX_DATA. `_mixture_search_peers.py` has the oracle and how peers are set.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from _common import ROOT, environment, report, row
from _mixture_search_peers import MOST, PEERS, Choose, Floats, Oracle, Places
from _mixture_tables import PROXIES, regmix
from mixture_designs import forecast, table_of
from taskmix.mixtures import BoostedTrees, MixtureTable, next_mixtures

REPEATS = 20
BATCH = 4
PACKAGES = ["optuna==5.0.0", "botorch==0.18.1"]
OURS, RANDOM, TREES = "ours", "at random", "LightGBM"
WAYS = (OURS, RANDOM, *PEERS, TREES)
ALONE = (0, 4, 8)  # losses that are targets by themselves: every fourth, as far as time allows
MEAN, TOLD, ALL = "mean loss", "mean loss, told as one number", "all targets"


@dataclass(frozen=True)
class Task:
    """One way with one target, from some beginnings."""

    way: str
    target: str
    seeds: tuple[int, ...]


def runs_needed(task: Task) -> list[int]:
    """[seed], the runs until a good one."""
    table = tables()[task.target]
    oracle = Oracle(table.shares, table.values.mean(axis=1))
    if task.way in PEERS:
        return ask_peer(task.way, oracle, task.seeds)
    search = {OURS: our_search, RANDOM: random_search, TREES: trees_search}[task.way]
    return [oracle.runs_needed(search(table, seed), seed) for seed in task.seeds]


def our_search(table: MixtureTable, seed: int) -> Choose:
    """The runs that are expected to lower the regret most."""

    def choose(seen: Places, left: Places) -> Places:
        proposed = next_mixtures(
            forecast(table.only(seen)),
            count=BATCH,
            runs_among=table.shares[left],
            best_among=table.shares,
            seed=seed + len(seen),
        )
        assert proposed.taken_from is not None
        return left[list(proposed.taken_from)]

    return choose


def random_search(table: MixtureTable, seed: int) -> Choose:
    random = np.random.default_rng((17, seed))
    return lambda seen, left: random.choice(left, 1)


def trees_search(table: MixtureTable, seed: int) -> Choose:
    """The best by boosted trees, a model for each loss."""

    def choose(seen: Places, left: Places) -> Places:
        fitted = BoostedTrees().fit(table.shares[seen], table.values[seen], seed=seed)
        predicted = fitted.predict(table.shares[left]).mean(axis=1)
        return left[np.argsort(predicted, kind="stable")[:BATCH]]

    return choose


def ask_peer(peer: str, oracle: Oracle, seeds: tuple[int, ...]) -> list[int]:
    python = environment("mixture-search", PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "oracle.npz"
        np.savez(path, shares=oracle.shares, target=oracle.target)
        done = subprocess.run(
            [str(python), str(ROOT / "benchmarks" / "_mixture_search_peers.py"), peer, str(path),
             json.dumps(seeds)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
    return list(json.loads(done.stdout))


def tables() -> dict[str, MixtureTable]:
    """For each target the runs with what a search is told of them; the target is the mean of that."""
    pool = regmix(PROXIES)
    alone = {
        f"loss {place + 1}": table_of(pool.shares, pool.values[:, place : place + 1])
        for place in ALONE
    }
    told = table_of(pool.shares, pool.values.mean(axis=1, keepdims=True))
    return {MEAN: pool, **alone, TOLD: told}


def measure(quick: bool, processes: int) -> list[dict[str, Any]]:
    environment("mixture-search", PACKAGES)  # before processes that would all make it
    repeats, targets = (3, [MEAN, TOLD]) if quick else (REPEATS, [*tables()])
    parts = [tuple(range(begin, min(begin + 5, repeats))) for begin in range(0, repeats, 5)]
    tasks = [
        Task(way, target, part)
        for target in targets
        for way in WAYS
        for part in parts
        if target != TOLD or way in (OURS, TREES)
    ]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as workers:
        results = list(workers.map(runs_needed, tasks))
    found: dict[tuple[str, str], list[int]] = {}
    for task, some in zip(tasks, results, strict=True):
        found.setdefault((task.target, task.way), []).extend(some)
    # The others are told one number anyway.
    needed = {
        target: {
            way: np.array(found.get((target, way)) or found[MEAN, way], dtype=np.float64)
            for way in WAYS
        }
        for target in targets
    }
    peers = [way for way in WAYS if way != OURS]
    rows = [compared(target, peer, [needed[target]]) for target in targets for peer in peers]
    # What is told as one number is the mean loss once more.
    every = [needed[target] for target in targets if target != TOLD]
    return rows + [compared(ALL, peer, every) for peer in peers]


def compared(target: str, peer: str, some: list[dict[str, Floats]]) -> dict[str, Any]:
    """Ours against a peer over one target or several, with the interval of the paired difference."""
    ours, theirs = (
        np.stack([each[way] for each in some]) for way in (OURS, peer)
    )  # [target, seed]
    apart = (ours - theirs).mean(axis=0)
    reach = student.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
    return {
        **row(target, float(ours.mean()), float(theirs.mean()), peer, "runs"),
        "difference": float(apart.mean()),
        "low": float(apart.mean() - reach),
        "high": float(apart.mean() + reach),
        "median_ours": float(np.median(ours)),
        "median_peer": float(np.median(theirs)),
        "found_ours": float((ours < MOST).mean()),
        "found_peer": float((theirs < MOST).mean()),
        "runs_ours": ours.astype(int).tolist(),
        "runs_peer": theirs.astype(int).tolist(),
    }


if __name__ == "__main__":
    report(
        "mixture_search",
        measure,
        __doc__.splitlines()[0],
        options={"--processes": {"type": int, "default": 1, "help": "at a time"}},
    )
