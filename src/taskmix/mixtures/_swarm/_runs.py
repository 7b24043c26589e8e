"""A run for each member of a swarm, on mixtures that are drawn or given."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taskmix.engine import GivenTasks, Optimization, Run
from taskmix.errors import InputError
from taskmix.mixtures._first_design import first_mixtures
from taskmix.mixtures._optimum._limits import MixtureLimits
from taskmix.mixtures._swarm._domains import train_bytes
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._table import Floats
from taskmix.policies import MixtureShares
from taskmix.tasks import TaskSet

GivenMixtures = Floats | Mapping[str, Mapping[str, float]]  # [member, domain], or by names
ROUNDED = 1e-3  # that shares written by hand may miss 1 by


def swarm_runs(
    tasks: TaskSet,
    options: SwarmOptions,
    *,
    device: str = "cpu",
    mixtures: GivenMixtures | None = None,  # None: drawn
) -> list[Run]:
    """The runs of a swarm, which train as one fleet: each its own mixture and its own seed.

    Every member is scored on every domain, whether it was trained on it or not. The tasks are taken as
    they are: `domains_of_swarm` makes their dev sets smaller.

    >>> swarm_runs(tasks, SwarmOptions(members=40, parameters="20k"))[39].label  # doctest: +SKIP
    'm39'
    """
    named = name_mixtures(tasks, options, mixtures)
    architecture = options.architecture()
    optimization = Optimization(
        optimizer="adamw",
        learning_rate=options.rate,
        weight_decay=options.weight_decay,
        schedule=options.schedule,
        warmup=options.warmup,
    )
    source = GivenTasks.of(tasks)
    every = None if not options.checkpoints else -(-options.steps // (options.checkpoints + 1))
    return [
        Run(
            label=name,
            source=source,
            architecture=architecture,
            policy=MixtureShares(tuple(shares.tolist())),
            optimization=optimization,
            steps=options.steps,
            batch_size=options.batch_size,
            checkpoint_every=every,
            precision="bfloat16" if device.startswith("cuda") else "float32",
            device=device,
            seed=options.seed + number,
        )
        for number, (name, shares) in enumerate(named.items())
    ]


def name_mixtures(
    tasks: TaskSet, options: SwarmOptions, mixtures: GivenMixtures | None
) -> dict[str, Floats]:
    """Of each member its shares [domain]: drawn, or as they were given."""
    if mixtures is None:
        mixtures = draw_mixtures(tasks, options)
    if isinstance(mixtures, Mapping):
        for name, shares in mixtures.items():
            _check_shares(name, shares, tasks)
        found = {
            name: np.array([float(shares.get(each, 0.0)) for each in tasks.names])
            for name, shares in mixtures.items()
        }
    else:
        found = dict(zip(member_names(len(mixtures)), np.asarray(mixtures), strict=True))
    shapes = {shares.shape for shares in found.values()}
    if len(found) != options.members or shapes != {(len(tasks),)}:
        raise InputError(
            f"The mixtures of a swarm should be {options.members} of {len(tasks)} shares. Found "
            f"{len(found)} of the shapes {sorted(shapes)}."
        )
    return found


def _check_shares(name: str, shares: Mapping[str, float], tasks: TaskSet) -> None:
    for each in shares:
        tasks.position(each)  # raises where there is no such domain
    values = np.array(list(shares.values()), dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any() or abs(values.sum() - 1) > ROUNDED:
        raise InputError(
            f"The shares of mixture `{name}` should be 0 or more and sum to 1. Found the sum "
            f"{values.sum():.4g}. Divide them by their sum."
        )


def member_names(count: int) -> tuple[str, ...]:
    """One name a member, of equal lengths."""
    digits = len(str(count - 1))
    return tuple(f"m{number:0{digits}}" for number in range(count))


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
