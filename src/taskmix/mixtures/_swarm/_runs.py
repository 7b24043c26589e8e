"""A run for each member of a swarm."""

from __future__ import annotations

from taskmix.engine import GivenTasks, Optimization, Run
from taskmix.errors import InputError
from taskmix.mixtures._swarm._mixtures import draw_mixtures
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._table import Floats
from taskmix.policies import Mixture
from taskmix.tasks import TaskSet


def swarm_runs(
    tasks: TaskSet,
    options: SwarmOptions,
    *,
    device: str = "cpu",
    mixtures: Floats | None = None,  # [member, domain]; None: drawn
) -> list[Run]:
    """The runs of a swarm, which train as one fleet: each its own mixture and its own seed.

    Every member is scored on every domain, whether it was trained on it or not. The tasks are taken as
    they are: `domains_of_swarm` makes their dev sets smaller.

    >>> swarm_runs(tasks, SwarmOptions(members=40, parameters="20k"))[39].label  # doctest: +SKIP
    'm39'
    """
    if mixtures is None:
        mixtures = draw_mixtures(tasks, options)
    if mixtures.shape != (options.members, len(tasks)):
        raise InputError(
            f"The mixtures of a swarm should be {options.members} of {len(tasks)} shares. Found the "
            f"shape {mixtures.shape}."
        )
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
            policy=Mixture(tuple(shares.tolist())),
            optimization=optimization,
            steps=options.steps,
            batch_size=options.batch_size,
            checkpoint_every=every,
            precision="bfloat16" if device.startswith("cuda") else "float32",
            device=device,
            seed=options.seed + number,
        )
        for number, (name, shares) in enumerate(
            zip(member_names(options.members), mixtures, strict=True)
        )
    ]


def member_names(count: int) -> tuple[str, ...]:
    """One name a member, of equal lengths.

    >>> member_names(12)[0], member_names(12)[-1]
    ('m00', 'm11')
    """
    digits = len(str(count - 1))
    return tuple(f"m{number:0{digits}}" for number in range(count))
