"""Whether verdicts of a study of transfer hold on fresh rows, in made worlds.

Worlds are of small tables, related, harmful and unrelated. A study of transfer is run on each, and its
verdicts, which know dev rows alone, are held against the effects of the same runs on many fresh rows.

    OMP_NUM_THREADS=1 python benchmarks/transfer.py [--worlds 0:40] [--quick] [--json]
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from _common import report, row
from taskmix.engine import Fleet, GivenTasks, Optimization, Run
from taskmix.models import Perceptron
from taskmix.records import Study
from taskmix.tasks import Split, Task, TaskSet
from taskmix.transfer import (
    LearningOptions,
    SubsetDesign,
    TransferLessons,
    TransferStudy,
    fit_linear_surrogate,
    study_transfer,
)

TASKS, FEATURES, FRESH = 8, 12, 4000
KINDS = ("related", "unrelated", "shuffled")


def drawn_tasks(seed: int) -> TaskSet:
    """Eight tasks of two classes with 45 to 70 dev rows and very many test rows.

    A class depends on a product of two directions that a task of few rows cannot find. Related tasks
    have them in common, unrelated ones have their own, and the labels of others are shuffled.
    """
    generator = np.random.default_rng([seed, 33])
    shared = generator.normal(size=(2, FEATURES)) / np.sqrt(FEATURES)
    kinds = generator.choice(KINDS, p=generator.dirichlet(np.ones(len(KINDS))), size=TASKS)
    tasks = []
    for number, kind in enumerate(kinds):
        own = generator.normal(size=(3, FEATURES)) / np.sqrt(FEATURES)
        lines = np.vstack([shared, own[2:]]) if kind == "related" else own
        tasks.append(_task(generator, f"t{number}", lines, shuffled=kind == "shuffled"))
    return TaskSet(tuple(tasks))


def _task(
    generator: np.random.Generator,
    name: str,
    lines: NDArray[np.float64],  # [3, feature]
    *,
    shuffled: bool,
) -> Task:
    sizes = {
        "train": int(np.exp(generator.uniform(np.log(40), np.log(800)))),
        "dev": int(generator.integers(45, 71)),
        "test": FRESH,
    }
    splits = {}
    for split, rows in sizes.items():
        values = generator.normal(size=(rows, FEATURES))
        one, other, line = lines @ values.T
        scores = 2 * one * other + 0.3 * line + 0.3 * generator.normal(size=rows)
        targets = (scores > 0).astype(np.int64)
        if shuffled:
            generator.shuffle(targets)
        columns: dict[str, Any] = {f"x{n}": values[:, n] for n in range(FEATURES)}
        splits[split] = Split(pa.table(columns), targets)
    return Task(
        name=name, kind="classification", inputs="table", labels=("no", "yes"), metric="accuracy",
        source=name, splits=splits,
    )  # fmt: skip


def ask_world(
    seed: int, *, subsets: int = 40
) -> tuple[TransferLessons, dict[str, NDArray[np.float64]]]:
    """A study of a world, and for each target the effects of its runs on fresh rows, [source]."""
    generator = np.random.default_rng([seed, 34])
    run = Run(
        label="world",
        source=GivenTasks.of(drawn_tasks(seed)),
        architecture=Perceptron(hidden=(int(generator.choice([8, 16, 32])),)),
        optimization=Optimization(learning_rate=0.005),
        steps=int(generator.choice([300, 600])),
        seed=0,
    )
    asked = TransferStudy(
        template=run,
        targets=tuple(f"t{n}" for n in range(TASKS)),
        design=SubsetDesign(count=subsets, alone=10, held_out=3),
        outcome="loss" if seed % 2 else "metric",
    )
    with tempfile.TemporaryDirectory() as folder:
        study = Study(Path(folder))
        options = LearningOptions(prefixes=0)
        lessons = study_transfer(asked, study, executor=Fleet(workers=1), options=options)
        metric = "loss" if asked.outcome == "loss" else "accuracy"
        fresh = np.full(lessons.measured.outcomes.shape, np.nan)
        for place, trial in enumerate(lessons.measured.trials):
            summary = study.run(trial.run.specification()).summary()
            for score in summary.scores if summary else ():
                if (score.split, score.metric) == ("test", metric):
                    fresh[place, asked.tasks.index(score.task)] = score.value
    elsewhere = replace(lessons.measured, outcomes=fresh)
    return lessons, {
        target: fit_linear_surrogate(elsewhere.table(target)).effects for target in asked.targets
    }


def verdicts(seeds: range) -> list[dict[str, Any]]:
    """How many verdicts keep their sign on fresh rows, against those that know these dev rows alone."""
    kept: dict[str, list[bool]] = {"ours": [], "before": []}
    for seed in seeds:
        lessons, fresh = ask_world(seed)
        for lesson in lessons.targets:
            same = lesson.surrogate.effects * fresh[lesson.target] > 0
            answers = [verdict.answer in ("helps", "harms") for verdict in lesson.verdicts]
            kept["ours"] += same[answers].tolist()
            these_rows = replace(lesson.table, dev_parts=lesson.table.dev_parts[:, :0])
            significant = fit_linear_surrogate(these_rows).p_values() <= 0.05
            kept["before"] += same[significant].tolist()
    shares = {name: float(np.mean(each)) if each else np.nan for name, each in kept.items()}
    peer, count = "these dev rows", len(kept["before"])
    return [
        row("verdicts that keep their sign", shares["ours"], shares["before"], peer, "share"),
        row("verdicts", len(kept["ours"]), count, peer, "pairs"),
    ]


def measure(quick: bool, worlds: str) -> list[dict[str, Any]]:
    first, end = map(int, worlds.split(":"))
    return verdicts(range(first, first + 1 if quick else end))


if __name__ == "__main__":
    words = {"default": "0:40", "metavar": "FIRST:END", "help": "the seeds of the worlds"}
    report("transfer", measure, __doc__ or "", options={"--worlds": words})
