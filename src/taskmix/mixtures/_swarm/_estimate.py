"""How long a swarm will take, before it begins."""

from __future__ import annotations

from itertools import islice

import numpy as np

from taskmix.engine import build, peak_operations
from taskmix.errors import OptionError
from taskmix.mixtures._swarm._options import SwarmOptions
from taskmix.mixtures._swarm._runs import GivenMixtures
from taskmix.mixtures._swarm._train import begin_swarm, operations_of, steps_done
from taskmix.models import CausalTransformer
from taskmix.records import Study
from taskmix.tasks import TaskSet
from taskmix.training import StepEvent, train

SHARE_OF_PEAK = 0.1  # that fleets of small transformers come to
COMPILING = 60.0  # seconds
TRIED_STEPS = 3
PASSES = 3  # of a step through the model, one there and two back; an evaluation has one
LONGEST = 48 * 3600.0  # seconds that nobody waits for unasked


def estimate_swarm(
    tasks: TaskSet,
    options: SwarmOptions,
    study: Study,
    *,
    device: str = "cpu",
    mixtures: GivenMixtures | None = None,
    at_once: int = 1,
) -> float | None:
    """How many seconds the rest of a swarm takes, about; None where nobody knows.

    On a CPU some steps of one member are tried, and `at_once` members train at the same time. On a GPU
    it goes by what fleets have done on large ones.

    >>> estimate_swarm(tasks, SwarmOptions(members=64), Study("swarm"))  # doctest: +SKIP
    5400.0
    """
    runs = begin_swarm(tasks, options, study, device=device, mixtures=mixtures)
    run = runs[0]
    left = len(runs) * run.steps - steps_done(runs, study)
    if not left:
        return 0.0
    evaluations = 1 if study.lean else 2  # at the last step, and row by row of what is kept
    dev_bytes = evaluations * options.dev_bytes * len(run.load())
    steps = left * (1 + dev_bytes / PASSES / options.tokens)
    if run.device.startswith("cuda"):
        peak = peak_operations(run.device)
        if peak is None or not isinstance(run.architecture, CausalTransformer):
            return None
        return COMPILING + steps * operations_of(run) / (peak * SHARE_OF_PEAK)
    model, encoded = build(run)
    optimizer, _ = run.optimization.build(model.parameters(), run.steps)
    events = train(
        model,
        encoded,
        steps=max(run.steps, TRIED_STEPS),
        optimizer=optimizer,
        generator=np.random.default_rng(run.seed),
        policy=run.policy,
        batch_size=run.batch_size,
    )
    tried = [event.seconds for event in islice(events, TRIED_STEPS) if isinstance(event, StepEvent)]
    return min(tried) * steps / max(1, min(at_once, len(runs)))


def check_swarm_time(seconds: float, options: SwarmOptions, *, device: str) -> None:
    """Raises where a swarm would take days.

    >>> check_swarm_time(1e6, SwarmOptions(members=64), device="cpu")
    Traceback (most recent call last):
    taskmix.errors.OptionError: A swarm should be done within 48 hours. Found about 11.6 days for 64 ...
    """
    if seconds > LONGEST:
        raise OptionError(
            f"A swarm should be done within {LONGEST / 3600:.0f} hours. Found about "
            f"{say_duration(seconds)} for {options.members} members and {options.tokens:,} tokens each "
            f"on {device}. Give fewer `members` or `tokens`, smaller models by `parameters`, or a GPU; "
            "or say that it may take `long`.",
            arguments=("members", "tokens", "parameters", "long"),
        )


def say_duration(seconds: float) -> str:
    """About how long, in words.

    >>> say_duration(40), say_duration(600), say_duration(9000), say_duration(400_000)
    ('40 seconds', '10 minutes', '2.5 hours', '4.6 days')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86400:.1f} days"
