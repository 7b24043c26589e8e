"""What a batch costs on this machine, measured once by training a little."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from taskmix.advise._adviser import UNITS
from taskmix.advise._budget import Prices
from taskmix.advise._candidates import EVALUATIONS
from taskmix.engine import Run, execute, run_all
from taskmix.policies import Uniform
from taskmix.records import Study
from taskmix.weighting import Equal

STEPS = 24  # of the shorter of two runs; the longer has three times as many
PROBES = 16


def measure_prices(
    template: Run, probe: Run, seconds: float, *, workers: int | None = None
) -> Prices:
    """Seconds a batch of the model and of the probe take, for a budget of so many seconds.

    Two runs of different length tell what a step takes and what every run takes besides (building the
    model, evaluating it); the latter is spread over as many batches as a run will have.
    """
    hands = workers or os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        study = Study(Path(folder))
        _timed(template, 2, study)  # the first one reads files and wakes the libraries
        short, long = (_timed(template, steps, study) for steps in (STEPS, 3 * STEPS))
        step = max((long - short) / (2 * STEPS), short / STEPS / 100)
        # The measured runs evaluate once and at their end; those to come do so more often.
        besides = max(short - STEPS * step, 0.0) * (EVALUATIONS + 2) / 3
        batches = max((seconds * hands / UNITS - besides) / step, STEPS)
        batch = (batches * step + besides) / batches / hands

        names = template.load().names[:4]
        runs = [
            replace(probe, tasks=names, weighting=Equal(), policy=None, reward=None, seed=seed)
            for seed in range(PROBES)
        ]
        begin = time.perf_counter()
        run_all(runs, study, engine="auto", workers=1)
        probes = (time.perf_counter() - begin) / (PROBES * len(names) * probe.steps) / hands
    return Prices(batch=batch, probe=probes)


def _timed(template: Run, steps: int, study: Study) -> float:
    run = replace(
        template,
        label="price",
        policy=Uniform(),
        weighting=None,
        reward=None,
        steps=steps,
        evaluate_every=steps,
        checkpoint_every=steps,
    )
    begin = time.perf_counter()
    execute(run, study)
    return time.perf_counter() - begin
