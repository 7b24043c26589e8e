"""A local Ray cluster against `here`: speed on two cores, the cost of a run, memory for many runs.

`speed` is the time of runs of a second or more on one core here, over that of two workers of Ray.
`overhead` is what a short run costs more with one worker of Ray than here on one core. `memory` is
the driver's peak for many queued runs, whose work is left out, over that for a thousand; garbage that
Python has not collected yet is part of the peak, and not of what is `left`. The cluster
is up and its workers have imported everything before anything is timed. Times of both sides
alternate, and the best of each counts: other programs only ever add to them.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from _common import report, row
from taskmix.engine import DigitsSource, Executed, Here, Ray, Run, cluster
from taskmix.engine._ray import _sender
from taskmix.engine._ray._work import Done
from taskmix.models import Perceptron
from taskmix.records import Study

RUN = Run(
    label="benchmark",
    source=DigitsSource(),
    architecture=Perceptron(hidden=(64,)),
    steps=100,
    seed=0,
)
LONG = 3000  # steps that take a second or more


def alternate(folder: Path, runs: list[Run], times: int, workers: int) -> tuple[float, float]:
    """The best times of all runs on one core here, and on so many workers of Ray."""
    found: dict[str, list[float]] = {"here": [], "ray": []}
    for number in range(times):
        for engine, executor in (("here", Here(workers=1)), ("ray", Ray(workers=workers))):
            study = Study(folder / f"{engine}-{workers}-{number}")
            begin = time.perf_counter()
            results = executor.run(runs, study)
            found[engine].append(time.perf_counter() - begin)
            assert {result.outcome for result in results} == {"finished"}
    return min(found["here"]), min(found["ray"])


def speed(folder: Path, quick: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    runs = [replace(RUN, steps=LONG, seed=seed) for seed in range(4 if quick else 12)]
    with cluster(workers=2):
        warm_up(folder / "warm-2", 2)
        here, there = alternate(folder, runs, 2 if quick else 3, workers=2)
    case = f"speed/{len(runs)}_runs_of_{here / len(runs):.1f}_s/2_workers"
    return row(case, there, here, "here, 1 worker", "s", ratio=here / there)


def overhead(folder: Path, quick: bool) -> dict[str, Any]:
    runs = [replace(RUN, steps=10, seed=seed) for seed in range(50 if quick else 200)]
    with cluster(workers=1):
        warm_up(folder / "warm-1", 1)
        here, there = (1e3 * t / len(runs) for t in alternate(folder, runs, 3, workers=1))
    return row("overhead/per_run", there - here, here, "a run here", "ms")


def warm_up(path: Path, workers: int) -> None:
    runs = [replace(RUN, label="warm", seed=seed) for seed in range(8 * workers)]
    Ray(workers=workers).run(runs, Study(path))


def no_work(numbers: list[int], *rest: Any) -> list[Done]:
    finished = Executed(outcome="finished", summary=None)
    return [Done(number=number, executed=finished) for number in numbers]


def peak(study: Study, count: int) -> tuple[float, float]:
    """Megabytes of the driver for so many queued runs: at most, and in the end without garbage."""
    runs = (replace(RUN, seed=seed) for seed in range(count))
    with mock.patch.object(_sender, "do_job", no_work):
        tracemalloc.start()
        done = sum(1 for _ in Ray().stream(runs, study))
        most = tracemalloc.get_traced_memory()[1]
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert done == count
    return most / 1e6, left / 1e6


def memory(folder: Path, quick: bool) -> list[dict[str, Any]]:
    many = 10_000 if quick else 100_000
    study = Study(folder / "queued")
    with cluster(workers=2):
        peak(study, 100)
        few, most = peak(study, 1_000), peak(study, many)
    return [
        row(f"memory/{many}_queued/{what}", ours, peer, "1000 queued", "MB")
        for what, ours, peer in zip(("at_most", "left"), most, few, strict=True)
    ]


def measure(quick: bool) -> list[dict[str, Any]]:
    folder = Path(tempfile.mkdtemp(prefix="taskmix-benchmark-"))
    try:
        return [speed(folder, quick), overhead(folder, quick), *memory(folder, quick)]
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    report("cluster", measure, __doc__ or "")
