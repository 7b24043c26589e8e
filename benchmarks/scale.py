"""What it costs to open, query, report, resume and learn, as runs and log rows grow.

Every figure is taken in a process of its own: seconds of processor time, which other work on the
machine does not change much, and the memory at its largest beyond what the process began with. The
peer of a row is the same thing at a tenth of the size, so that a ratio of 10 is linear growth; rows
that stay below it have a fixed part. Studies are of runs of the demo's 8 tasks; the log is of one run
whose losses and rewards are random float32 numbers, as a model's are.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from _common import apart, repeated, report, row, started
from taskmix.counterfactual import improve_policy, log_of_runs
from taskmix.engine import DigitsSource, Here, Run, execute
from taskmix.models import Perceptron
from taskmix.records import RecordWriter, RunFolder, Study
from taskmix.report import write_report

COMMIT = 1_000_000  # rows, of the long log
TASKS = 14
Action = Callable[[], object]
RUN = Run(label="x", source=DigitsSource(), architecture=Perceptron(hidden=(4,)), steps=10, seed=0)


class Growing:
    """Rows for a size after the other, each beside the size before it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._before: dict[str, list[float]] = {}

    def add(self, axis: str, size: int, actions: dict[str, Action]) -> None:
        for name, action in actions.items():
            _, *found = apart(repeated(action, 1))  # what it gives is not sent
            before = self._before.get(f"{axis}/{name}", [None, None])
            for value, peer, unit in zip(found, before, ("s", "MB"), strict=True):
                case = f"{axis}={size}/{name}" + ("/memory" if unit == "MB" else "")
                self.rows.append(row(case, value, peer, "a tenth", unit))
            self._before[f"{axis}/{name}"] = found


def write_log(writer: RecordWriter, rows: int, tasks: int) -> None:
    """Rows with a commit now and then; probabilities change with each commit."""
    generator = np.random.default_rng(0)
    state = {"weights": np.zeros(1000)}
    for first in range(1, rows + 1, COMMIT):
        count = min(COMMIT, rows + 1 - first)
        probabilities = generator.dirichlet(np.full(tasks, 5.0))
        chosen = generator.choice(tasks, count, p=probabilities)
        writer.add_steps(
            np.arange(first, first + count),
            chosen,
            probability=probabilities[chosen],
            probabilities=probabilities,
            loss=generator.random(count, dtype=np.float32).astype(np.float64),
            reward=generator.random(count, dtype=np.float32).astype(np.float64),
            seconds=0.001,
            examples=32,
        )
        writer.add_scores(first + count - 1, [("task 0", "dev", "accuracy", 0.5)])
        writer.commit(first + count - 1, state, best=state, best_step=first)


def mean_loss(folder: RunFolder) -> float:
    total, count = 0.0, 0
    for batch in folder.iter_step_batches(["loss"]):
        total += pc.sum(batch["loss"]).as_py()
        count += len(batch)
    return total / count


def resume(folder: RunFolder) -> None:
    with folder.claim() as claim:
        assert claim.writer is not None
        assert claim.writer.resumed is not None


def learn(folder: RunFolder) -> None:
    improve_policy(log_of_runs([folder]))


def grow_rows(growing: Growing, folder: Path, sizes: list[int]) -> None:
    for rows in sizes:
        specification = {"rows": rows}
        study = Study(folder / f"rows-{rows}")
        run = study.run(specification)

        def record(run: RunFolder = run, specification: dict[str, Any] = specification) -> None:
            with run.claim() as claim:
                names = [f"task {number}" for number in range(TASKS)]
                rows = specification["rows"]
                write_log(started(claim, specification, names, rows), rows, TASKS)

        growing.add(
            "rows",
            rows,
            {
                "write": record,
                "open": run.summary,
                "query": lambda run=run: mean_loss(run),
                "learn": lambda run=run: learn(run),
                "report": lambda study=study: write_report(study, study.path / "page.html"),
                "resume": lambda run=run: resume(run),
            },
        )
        shutil.rmtree(study.path)


def grow_runs(growing: Growing, folder: Path, sizes: list[int]) -> None:
    for runs in sizes:
        study = Study(folder / f"runs-{runs}")
        asked = [replace(RUN, seed=seed) for seed in range(runs)]
        make_study(study, asked)

        def resumed(study: Study = study, asked: list[Run] = asked) -> None:
            """Asking for all of them again, of which none is left to do."""
            results = Here(workers=1).run(asked, study)
            assert {result.outcome for result in results} == {"already finished"}

        growing.add(
            "runs",
            runs,
            {
                "open": study.summaries,
                "query": study.scores,
                "report": lambda study=study: write_report(study, study.path / "page.html"),
                "resume": resumed,
            },
        )
        shutil.rmtree(study.path)


def make_study(study: Study, runs: list[Run]) -> None:
    """The first run as the engine leaves it, and copies of its description for all others."""
    execute(runs[0], study)
    document = json.loads((study.run(runs[0].specification()).path / "run.json").read_text())
    del document["crc32"]  # who changes a description by hand takes it out
    for run in runs[1:]:
        specification = run.specification()
        folder = study.run(specification).path
        folder.mkdir()
        own = {"name": folder.name, "seed": run.seed, "specification": specification}
        (folder / "run.json").write_text(json.dumps(document | own, indent=2))


def measure(quick: bool) -> list[dict[str, Any]]:
    growing = Growing()
    folder = Path(tempfile.mkdtemp(prefix="taskmix-benchmark-"))
    try:
        grow_runs(growing, folder, [100, 1000] if quick else [1000, 10_000, 100_000])
        sizes = [100_000, 1_000_000] if quick else [1_000_000, 10_000_000, 100_000_000]
        grow_rows(growing, folder, sizes)
    finally:
        shutil.rmtree(folder)
    return growing.rows


if __name__ == "__main__":
    report("scale", measure, __doc__ or "")
