"""The mixtures of a swarm's members."""

from __future__ import annotations

import numpy as np

from taskmix.errors import InputError, OptionError
from taskmix.mixtures._swarm._domains import train_bytes
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._table import Floats
from taskmix.tasks import TaskSet


def natural_shares(tasks: TaskSet) -> Floats:
    """[domain], by the bytes to train on."""
    sizes = np.array([train_bytes(task) for task in tasks], dtype=np.float64)
    return np.asarray(sizes / sizes.sum())


def draw_mixtures(tasks: TaskSet, options: SwarmOptions) -> Floats:
    """Shares [member, domain]; the replicates come last, each the mixture of an earlier member."""
    domains, replicates = len(tasks), options.replicates or 0
    if options.members - replicates < domains:
        raise InputError(
            f"A swarm should have a mixture a domain at least, {domains} here. Found "
            f"{options.members - replicates} mixtures for {options.members} members. Give more "
            "members, or fewer domains or replicates."
        )
    low, high = np.zeros(domains), np.ones(domains)
    for name, smallest, largest in options.bounds:
        place = tasks.position(name)
        low[place], high[place] = smallest, largest
    if low.sum() > 1 or high.sum() < 1:
        raise OptionError(
            "`bounds` should leave room for shares that sum to 1. Found smallest shares of "
            f"{low.sum():.3g} and largest ones of {high.sum():.3g} together."
        )
    center = natural_shares(tasks)
    if options.prior == "uniform":
        center = np.full(domains, 1 / domains)
    return _first(center, low, high, options.members, replicates, options.seed)


def _first(
    center: Floats, low: Floats, high: Floats, members: int, replicates: int, seed: int
) -> Floats:
    """Corners, the center, and draws of a Dirichlet around it of which some are sharp."""
    random = np.random.default_rng(seed)
    domains, distinct = len(center), members - replicates
    rows = [center]
    while len(rows) < distinct:
        sharpness = np.exp(random.uniform(np.log(0.1), np.log(5.0)))
        drawn = random.dirichlet(np.maximum(sharpness * domains * center, 1e-2))
        drawn[drawn < 1e-3] = 0.0  # a share that is never drawn in a run
        rows.append(drawn / drawn.sum())
    shares = np.array([within(row, low, high) for row in rows])
    again = random.integers(0, distinct, replicates)
    return np.concatenate([shares, shares[again]])


def within(shares: Floats, low: Floats, high: Floats) -> Floats:
    """The nearest shares inside bounds, by moving all by the same amount."""
    least, most = -1.0, 1.0
    for _ in range(60):
        middle = (least + most) / 2
        if np.clip(shares + middle, low, high).sum() < 1:
            least = middle
        else:
            most = middle
    found = np.clip(shares + most, low, high)
    return np.asarray(found / found.sum())
