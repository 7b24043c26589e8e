"""What a batch costs on this machine, measured once by training a little.

As many processes as there will be do the same at once, so that what they take from each other is in
the prices. A record says how long its steps took; what is left of its time went into evaluations.
Where these are cheap, a second run with more steps and more evaluations tells both more exactly.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from taskmix.adviser._budget import Prices
from taskmix.adviser._candidates import evaluated_rows
from taskmix.engine import Executor, Run, fleet_pays
from taskmix.errors import RunError
from taskmix.policies import Uniform
from taskmix.records import Study
from taskmix.tasks import TaskSet
from taskmix.transfer import SubsetDesign
from taskmix.weighting import Equal

FIRST_STEPS = 24  # of the first run: fewer, and warming up is most of what is timed
MOST_STEPS = 1200  # of the second: more tell the price no better
EVALUATIONS_OF_SECOND = 3  # the first has one: the difference is the price of evaluated rows
BUDGET_SHARE = 0.02  # that the second run may take
FLEET_MEMBERS = 8  # probes for each process: with fewer, a fleet looks more expensive than it is
SMALLEST_SECONDS = 1e-6  # of a batch, by which the budget is divided


def measure_prices(
    template: Run,
    probe: Run | None,
    seconds: float,
    *,
    executor: Executor,
) -> Prices:
    """For a budget of so many seconds; starting the workers is no part of any price."""
    tasks = template.load()
    with tempfile.TemporaryDirectory() as folder:
        meter = _Meter(Study(Path(folder)), executor)
        model = replace(template, label="price", policy=Uniform(), weighting=None, reward=None)
        first = meter.run(model, steps=FIRST_STEPS, evaluations=1)
        batch, start = first.training / FIRST_STEPS, 0.0
        row = first.besides / evaluated_rows(tasks, 1)
        if first.training + first.besides < BUDGET_SHARE * seconds:
            steps = int(
                min(
                    max(BUDGET_SHARE * seconds / max(batch, SMALLEST_SECONDS), 3 * FIRST_STEPS),
                    MOST_STEPS,
                )
            )
            second = meter.run(model, steps=steps, evaluations=EVALUATIONS_OF_SECOND)
            batch = second.training / steps
            more = evaluated_rows(tasks, EVALUATIONS_OF_SECOND) - evaluated_rows(tasks, 1)
            row = max((second.besides - first.besides) / more, 0.0)
            start = max(second.besides - row * evaluated_rows(tasks, EVALUATIONS_OF_SECOND), 0.0)
            start += second.around
        price = _probe_price(meter, probe, tasks) if probe is not None else batch
        return Prices(
            batch=max(batch, SMALLEST_SECONDS),
            probe=price,
            start=start,
            row=row,
            workers=executor.at_once,
        )


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """Seconds of one run, the mean over processes."""

    training: float
    besides: float  # in evaluations and checkpoints
    around: float  # before and after: its model, its process


class _Meter:
    """Times runs that all processes do at once; each is done under a seed of its own."""

    def __init__(self, study: Study, executor: Executor) -> None:
        self.executor = executor
        self._study = study
        self._seed = 0

    def run(self, run: Run, *, steps: int, evaluations: int) -> _Measured:
        # The checkpoints of a run come with its evaluations, so they are in that price.
        every = max(steps // evaluations, 1)
        run = replace(run, steps=steps, evaluate_every=every, checkpoint_every=every)
        workers = self.executor.at_once
        runs = [replace(run, seed=self._seed + place) for place in range(workers)]
        wall = self([run] * workers)
        folders = [self._study.run(each.specification()) for each in runs]
        whole = [summary.seconds for each in folders if (summary := each.summary()) is not None]
        training = [float(np.sum(each.steps(["seconds"])["seconds"])) for each in folders]
        return _Measured(
            training=float(np.mean(training)),
            besides=max(float(np.mean(whole) - np.mean(training)), 0.0),
            around=max(wall - max(whole), 0.0),
        )

    def __call__(self, runs: Sequence[Run]) -> float:
        """Seconds that these took, each under a new seed."""
        asked = [replace(run, seed=self._seed + place) for place, run in enumerate(runs)]
        self._seed += len(asked)
        begin = time.perf_counter()
        for result in self.executor.run(asked, self._study):
            if result.error is not None:
                raise RunError(f"A first short run should work. It failed: {result.error}")
            if result.outcome == "stopped":
                raise RunError("Stopped before it was known how long a batch takes.")
        return time.perf_counter() - begin


def _probe_price(meter: _Meter, probe: Run, tasks: TaskSet) -> float:
    """Of a batch, for one process, on subsets as a study of transfer has them."""
    if len(tasks) < 4:  # none is studied
        return 1.0
    size = SubsetDesign().source_size(len(tasks) - 1) + 1
    workers = meter.executor.at_once
    run = replace(probe, weighting=Equal(), policy=None, reward=None)
    together = fleet_pays([run, replace(run, seed=1)])
    generator = np.random.default_rng(0)

    def subsets(steps: int) -> list[Run]:
        every = max(steps * (probe.evaluate_every or steps) // probe.steps, 1)
        return [
            replace(
                run,
                tasks=tuple(tasks.names[place] for place in sorted(chosen)),
                steps=steps,
                evaluate_every=every,
                checkpoint_every=steps,
            )
            for chosen in (
                generator.choice(len(tasks), size, replace=False)
                for _ in range(workers * (FLEET_MEMBERS if together else 1))
            )
        ]

    short, long = probe.steps // 10, probe.steps // 3
    first, second = meter(subsets(short)), meter(subsets(long))
    step = max((second - first) / (long - short), 0.0)
    whole = max(first + (probe.steps - short) * step, SMALLEST_SECONDS)
    return whole / (probe.steps * size * (FLEET_MEMBERS if together else 1))
