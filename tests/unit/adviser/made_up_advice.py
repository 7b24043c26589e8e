"""Advice whose scores are made up, over the demo's tasks and without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from taskmix.adviser import AdviseOptions, Budget
from taskmix.adviser._advice import Advice
from taskmix.adviser._budget import PricedBudget
from taskmix.adviser._candidates import baselines
from taskmix.adviser._race import Race, Standing, run_race
from taskmix.adviser._scores import Entry
from taskmix.engine import DigitsSource, Run
from taskmix.models import Perceptron
from taskmix.numerics import Interval
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
    race: Race | None = None,  # None: by the scores
    **other: Any,
) -> Advice:
    known = candidates()
    known["tempered"] = replace(
        known["size"], name="tempered"
    )  # one that nobody does without advice
    entries = {
        name: [_entry(known[name], seed, value, batches) for seed, value in enumerate(values)]
        for name, values in scores.items()
    }
    advice = Advice(
        options=AdviseOptions(budget=Budget(batches=20_000)),
        tasks=TEMPLATE.load(),
        targets=TASKS,
        findings=(),
        budget=PricedBudget(batches=20_000, probe_price=0.1),
        batches=batches,
        batch_size=32,
        spent=spent,
        entries=entries,
        race=race or _race_of(tuple((name, tuple(some)) for name, some in scores.items())),
        lessons=None,
        unlearned=(),
        architecture=TEMPLATE.architecture,
    )
    return replace(advice, **other)


@cache
def _race_of(scores: tuple[tuple[str, tuple[float, ...]], ...]) -> Race:
    """Drawing takes a while, and the same scores have the same race."""
    return run_race(dict(scores))


def made_up_race(
    behind: Mapping[str, float],  # of each way, the leader first
    *,
    out: Sequence[str] = (),
    width: float = 0.03,  # half of the intervals
    seeds: int = 2,
    noise: float = 0.01,
) -> Race:
    """A race of which everything is given."""
    standings = tuple(
        Standing(
            name=name,
            seeds=seeds,
            mean=0.9 - gap,
            behind=Interval(gap, gap - width, gap + width, seeds, 0.9),
            is_open=name not in out,
            chance=0.0 if name in out else 1 / (len(behind) - len(out)),
        )
        for name, gap in behind.items()
    )
    return Race(standings=standings, noise=noise)


def _entry(
    candidate: Plan, seed: int, value: float, batches: int, loss: float | None = None
) -> Entry:
    return Entry(
        candidate=candidate,
        seed=seed,
        runs=tuple(candidate.runs(replace(TEMPLATE, steps=batches), seeds=[seed], evaluations=8)),
        dev=dict.fromkeys(TASKS, value),
        test=dict.fromkeys(TASKS, value - 0.01),
        batches=float(batches),
        folders=(f"{candidate.name}-{seed}",),
        loss={} if loss is None else dict.fromkeys(TASKS, loss),
    )


@dataclass(frozen=True)
class MadeUpStudy:
    """Stands for a study: every run of a seed has the evaluations of `curves` that are its own."""

    curves: Mapping[int, Curve] = field(default_factory=dict)  # by seed
    credits: Mapping[str, Any] = field(default_factory=dict)  # of each task's rows, in all runs

    def run(self, specification: Mapping[str, object]) -> MadeUpRun:
        seed = specification["seed"]
        assert isinstance(seed, int)
        tasks = specification["tasks"]
        assert isinstance(tasks, Mapping)
        curves = self.curves.get(seed, {})
        return MadeUpRun(
            {name: curves[name] for name in tasks["names"] if name in curves},
            {
                name: np.asarray(self.credits[name])
                for name in tasks["names"]
                if name in self.credits
            },
        )


@dataclass(frozen=True)
class MadeUpRun:
    curves: Curve
    kept: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def credits(self) -> dict[str, NDArray[Any]]:
        return dict(self.kept)

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
