"""The mixtures of a swarm's members."""

from __future__ import annotations

import numpy as np

from taskmix.errors import InputError
from taskmix.mixtures._designing import first_mixtures
from taskmix.mixtures._optimum import MixtureLimits
from taskmix.mixtures._swarm._domains import train_bytes
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._table import Floats
from taskmix.tasks import TaskSet


def draw_mixtures(tasks: TaskSet, options: SwarmOptions) -> Floats:
    """Shares [member, domain]: a first design, some of its mixtures repeated."""
    mixtures = options.members - (options.replicates or 0)
    if mixtures < len(tasks):
        raise InputError(
            f"A swarm should have at least one mixture for each of its {len(tasks)} domains. Found "
            f"{mixtures} for {options.members} members. Give more `members`, or fewer domains or "
            "`replicates`.",
            arguments=("members", "replicates"),
        )
    for name, _, _ in options.bounds:
        tasks.position(name)  # raises where there is no such domain
    limits = MixtureLimits(
        at_least={name: low for name, low, _ in options.bounds},
        at_most={name: high for name, _, high in options.bounds},
    )
    natural = None
    if options.prior == "natural":
        natural = np.array([train_bytes(task) for task in tasks], dtype=np.float64)
    return first_mixtures(
        tasks.names,
        options.members,
        limits=limits,
        prior=natural,
        replicates=options.replicates,
        seed=options.seed,
    ).shares
