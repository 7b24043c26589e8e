"""A study of transfer whose runs are made up: what each source changes is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taskmix.engine import DigitsSource, Executed, Run
from taskmix.models import Perceptron
from taskmix.records import FinalScore, RunSummary, Study
from taskmix.transfer import SubsetDesign, TransferStudy

NAMES = DigitsSource().load().names
TEMPLATE = Run(
    label="x", source=DigitsSource(), architecture=Perceptron(hidden=(8,)), steps=24, seed=0
)
# What each source changes, of every target alike: the two shuffled ones harm.
EFFECTS = dict(zip(NAMES, (-0.3, -0.2, -0.1, -0.1, 0.0, 0.0, 0.2, 0.4), strict=True))


def description(targets: Sequence[str] = ("half",), **changes: object) -> TransferStudy:
    options = {"template": TEMPLATE, "targets": tuple(targets), "design": SubsetDesign(count=30)}
    return TransferStudy(**(options | changes))  # type: ignore[arg-type]


class Pretended:
    """Runs whose losses add up as they are said to; some fail."""

    def __init__(self, *, noise: float = 0.02, failing: Sequence[frozenset[str]] = ()) -> None:
        self.noise = noise
        self.failing = failing
        self.asked: list[Run] = []

    at_once = 1

    def run(self, runs: Sequence[Run], study: Study, **how: object) -> list[Executed]:
        self.asked.extend(runs)
        return [self._executed(run) for run in runs]

    def _executed(self, run: Run) -> Executed:
        names = run.tasks or ()
        if frozenset(names) in self.failing:
            failed = replace(summary_of(run, ()), status="failed")
            return Executed(outcome="failed", summary=failed, error="the loss became NaN")
        generator = np.random.default_rng([run.seed, *(NAMES.index(name) for name in names)])
        scores = []
        for name in names:
            value = 2 + sum(EFFECTS[other] for other in names if other != name)
            value += self.noise * float(generator.normal())
            scores += [
                FinalScore(name, "dev", "loss", value),
                FinalScore(name, "dev", "accuracy", 1 - value / 4),
                FinalScore(name, "test", "loss", math.nan),
            ]
        return Executed(outcome="finished", summary=summary_of(run, tuple(scores)))


def summary_of(run: Run, scores: tuple[FinalScore, ...]) -> RunSummary:
    return RunSummary(
        name="x",
        status="finished",
        label=run.label,
        seed=run.seed,
        step=run.steps,
        steps=run.steps,
        seconds=1.0,
        best_step=None,
        error=None,
        created="",
        updated="",
        scores=scores,
        tasks=[],
        versions={},
        specification={},
        kept=None,
    )
