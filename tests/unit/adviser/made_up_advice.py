"""Advice whose scores are made up, over the demo's tasks and without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from taskmix.adviser import AdviseOptions, Budget
from taskmix.adviser._advice import Advice
from taskmix.adviser._budget import PricedBudget
from taskmix.adviser._candidates import baselines
from taskmix.adviser._race import run_race
from taskmix.adviser._scores import Entry
from taskmix.engine import DigitsSource, Run
from taskmix.models import Perceptron
from taskmix.plans import Plan

TASKS = ("parity", "half")
TEMPLATE = Run(
    label="t", source=DigitsSource(), architecture=Perceptron(), steps=1, seed=0, tasks=TASKS
)
Curve = Mapping[str, Sequence[tuple[int, float]]]  # of each task: steps and dev accuracies


def candidates() -> dict[str, Plan]:
    return {each.name: each for each in baselines(TEMPLATE.load(), TASKS)}


def made_up_advice(
    scores: Mapping[str, Sequence[float]],  # of each candidate, a seed each
    *,
    batches: int = 800,
    spent: float = 8000.0,
) -> Advice:
    known = candidates()
    entries = {
        name: [_entry(known[name], seed, value, batches) for seed, value in enumerate(values)]
        for name, values in scores.items()
    }
    return Advice(
        options=AdviseOptions(budget=Budget(batches=20_000)),
        tasks=TEMPLATE.load(),
        targets=TASKS,
        findings=(),
        budget=PricedBudget(batches=20_000, probe_price=0.1),
        batches=batches,
        batch_size=32,
        spent=spent,
        entries=entries,
        race=run_race(scores),
        lessons=None,
        unlearned=(),
    )


def _entry(candidate: Plan, seed: int, value: float, batches: int) -> Entry:
    return Entry(
        candidate=candidate,
        seed=seed,
        runs=tuple(candidate.runs(replace(TEMPLATE, steps=batches), seeds=[seed], evaluations=8)),
        dev=dict.fromkeys(TASKS, value),
        test=dict.fromkeys(TASKS, value - 0.01),
        batches=float(batches),
        folders=(f"{candidate.name}-{seed}",),
    )


@dataclass(frozen=True)
class MadeUpStudy:
    """Stands for a study: every run of a seed has the evaluations of `curves` that are its own."""

    curves: Mapping[int, Curve]  # by seed

    def run(self, specification: Mapping[str, object]) -> MadeUpRun:
        seed = specification["seed"]
        assert isinstance(seed, int)
        tasks = specification["tasks"]
        assert isinstance(tasks, Mapping)
        curves = self.curves.get(seed, {})
        return MadeUpRun({name: curves[name] for name in tasks["names"] if name in curves})


@dataclass(frozen=True)
class MadeUpRun:
    curves: Curve

    def scores(self) -> pa.Table:
        rows = [
            {"step": step, "task": task, "split": split, "metric": metric, "value": value}
            for task, curve in self.curves.items()
            for step, value in curve
            for split, metric in (("dev", "accuracy"), ("dev", "loss"), ("train", "accuracy"))
        ]
        schema = pa.schema(
            [
                ("step", pa.int64()),
                ("task", pa.string()),
                ("split", pa.string()),
                ("metric", pa.string()),
                ("value", pa.float64()),
            ]
        )
        return pa.Table.from_pylist(rows, schema=schema)
