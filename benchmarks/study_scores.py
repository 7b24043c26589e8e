"""How fast a study of 10,000 runs gives its score table, and what recording a step costs.

The peer of the score table is the loop anybody would write over the same files: `json.load` each.
The peer of a recorded step is a line of CSV, flushed to the disk as often.
"""

from __future__ import annotations

import csv
import gc
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _common import report, row
from taskmix.records import Study

TASKS = [f"task {number}" for number in range(14)]
SCORES = [(task, split, "accuracy", 0.5) for task in TASKS for split in ("dev", "test")]


def make_study(path: Path, runs: int) -> None:
    """One run as the writer leaves it, and as many copies under other names and seeds."""
    specification = {"policy": {"kind": "Uniform"}, "optimization": {"rate": 1e-3}, "seed": 0}
    with Study(path).run(specification).claim() as claim:
        assert claim.writer is not None
        tasks = [{"name": task, "kind": "classification", "sizes": {"train": 9}} for task in TASKS]
        claim.writer.start(
            specification=specification, seed=0, label="uniform", tasks=tasks, steps=1000
        )
        claim.writer.finish(scores=SCORES, best_step=800)
    (first,) = Study(path).runs()
    document = json.loads((first.path / "run.json").read_text())
    del document["crc32"]  # who changes a description by hand takes it out
    for seed in range(1, runs):
        folder = path / f"{seed:016x}"
        folder.mkdir()
        copy = document | {"name": folder.name, "seed": seed}
        (folder / "run.json").write_text(json.dumps(copy, indent=2))


def plain_loop(path: Path) -> int:
    rows = []
    for folder in sorted(path.iterdir()):
        with (folder / "run.json").open() as file:
            run = json.load(file)
        if run["status"] == "finished":
            rows += [(run["name"], run["label"], run["seed"], *s.values()) for s in run["scores"]]
    return len(rows)


def best_of(times: int, action: Callable[[], object]) -> float:
    taken = []
    for _ in range(times):
        gc.collect()
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def record_steps(path: Path, steps: int, every: int) -> tuple[float, float]:
    """Microseconds a step takes to add, and with its share of the commits."""
    vector = np.full(len(TASKS), 1 / len(TASKS))
    specification = {"steps": steps}
    adding = 0.0
    with Study(path).run(specification).claim() as claim:
        writer = claim.writer
        assert writer is not None
        tasks = [{"name": task} for task in TASKS]
        writer.start(specification=specification, seed=0, label="", tasks=tasks, steps=steps)
        begin = time.perf_counter()
        for first in range(1, steps + 1, every):
            block = time.perf_counter()
            for step in range(first, first + every):
                writer.add_step(
                    step,
                    step % 14,
                    probability=0.1,
                    probabilities=vector,
                    loss=1.5,
                    reward=0.5,
                    weight=None,
                    seconds=0.01,
                    examples=32,
                )
            adding += time.perf_counter() - block
            writer.commit(first + every - 1, {}, best=None, best_step=None)
        total = time.perf_counter() - begin
    return 1e6 * adding / steps, 1e6 * total / steps


def csv_steps(path: Path, steps: int, every: int) -> tuple[float, float]:
    vector = np.full(len(TASKS), 1 / len(TASKS))
    adding = 0.0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        begin = time.perf_counter()
        for first in range(1, steps + 1, every):
            block = time.perf_counter()
            for step in range(first, first + every):
                writer.writerow((step, step % 14, 0.1, 1.5, 0.5, None, 0.01, 32, *vector))
            adding += time.perf_counter() - block
            file.flush()
            os.fsync(file.fileno())
        total = time.perf_counter() - begin
    return 1e6 * adding / steps, 1e6 * total / steps


def measure(quick: bool) -> list[dict[str, Any]]:
    runs, times = (2_000, 3) if quick else (10_000, 5)
    folder = Path(tempfile.mkdtemp(prefix="taskmix-benchmark-"))
    try:
        make_study(folder / "study", runs)
        study = Study(folder / "study")
        assert study.scores().num_rows == plain_loop(folder / "study") == runs * len(SCORES)
        ours = best_of(times, study.scores)
        peer = best_of(times, lambda: plain_loop(folder / "study"))
        found = [row(f"scores/{runs}_runs", ours, peer, "json.load loop", "s", ratio=peer / ours)]
        steps, every = 20_000, 1_000
        mine = [record_steps(folder / f"steps-{n}", steps, every) for n in range(times)]
        csvs = [csv_steps(folder / f"steps-{n}.csv", steps, every) for n in range(times)]
        for place, case in enumerate(("add_step", "step_with_commits")):
            ours, peer = (statistics.median(each[place] for each in all_) for all_ in (mine, csvs))
            case = f"record/{case}"
            found.append(row(case, ours, peer, "csv.writer", "microseconds", ratio=peer / ours))
        return found
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    report("study_scores", measure, __doc__ or "")
