"""Executors that train nothing: scores are made up, and written as any run's are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from taskmix.adviser import Advised, AdviseOptions, Budget, News, advise_on
from taskmix.engine import DigitsSource, Executed, Run, TaskSource
from taskmix.models import Architecture, Perceptron
from taskmix.records import Study

REAL, SHUFFLED = ("half", "parity", "prime"), ("shuffled_parity",)
TASKS = (*REAL, *SHUFFLED)
Scorer = Callable[[Run, str], float]


def sound(run: Run, task: str) -> float:
    """Real tasks are learned, best by `size`; the shuffled one is not."""
    if task in SHUFFLED:
        return 0.5
    return {"size": 0.95, "uniform": 0.9, "single": 0.85}.get(run.label, 0.88)


@dataclass
class World:
    """Can be told to stop after so many runs, and to fail some."""

    scorer: Scorer = sound
    noise: float = 0.002
    left: int | None = None
    fails: Callable[[Run], bool] = lambda run: False
    curve: Callable[[Run, str, float], float] | None = None  # a dev score after so many batches
    done: list[Run] = field(default_factory=list)

    at_once = 1

    def run(self, runs: Sequence[Run], study: Study, **how: object) -> list[Executed]:
        return [self._execute(run, study) for run in runs]

    def _execute(self, run: Run, study: Study) -> Executed:
        folder = run.folder(study)
        with folder.claim() as claim:
            writer = claim.writer
            if writer is None:
                return Executed(outcome="already finished", summary=folder.summary())
            if self.left == 0:
                return Executed(outcome="stopped", summary=None)
            if self.left is not None:
                self.left -= 1
            self.done.append(run)
            names = run.load().names
            about = run.specification()
            tasks = [{"name": name} for name in names]
            writer.start(
                specification=about, seed=run.seed, label=run.label, steps=run.steps, tasks=tasks
            )
            if self.fails(run):
                writer.fail("the loss was not finite")
                error = "the loss was not finite"
                return Executed(outcome="failed", summary=folder.summary(), error=error)
            luck = np.random.default_rng(int(folder.name, 16)).normal(0, self.noise)
            if self.curve is not None:
                for step in sorted({max(run.steps * part // 8, 1) for part in range(1, 9)}):
                    batches = run.cost_of(step)
                    rows = [
                        (name, "dev", "accuracy", self.curve(run, name, batches) + luck)
                        for name in names
                    ]
                    writer.add_scores(step, rows)
            scores = [
                (name, split, metric, value if metric == "accuracy" else 1 - value)
                for name in names
                for value in [self._final(run, name) + luck]
                for split in ("dev", "test")
                for metric in ("accuracy", "loss")
            ]
            writer.finish(scores=scores, best_step=run.steps, step=run.steps)
        return Executed(outcome="finished", summary=folder.summary())

    def _final(self, run: Run, task: str) -> float:
        if self.curve is not None:
            return self.curve(run, task, run.cost_of(run.steps))
        return self.scorer(run, task)


class _AnsweredError(Exception):
    """The answer is there: pages are drawn elsewhere."""


def ask(
    world: World,
    folder: Path,
    budget: str | Budget = "20000-steps",
    *,
    source: TaskSource | None = None,
    architecture: Architecture | None = None,
    hear: Callable[[News], None] = lambda news: None,
    **options: object,
) -> Advised:
    """Advice in a world, without a model and without a page."""
    source = DigitsSource(tasks=TASKS) if source is None else source
    template = Run(
        label="t", source=source, architecture=architecture or Perceptron(), steps=1, seed=0
    )
    found: list[Advised] = []

    def answered(advised: Advised) -> None:
        found.append(advised)
        raise _AnsweredError

    wanted = Budget.parse(budget) if isinstance(budget, str) else budget
    with contextlib.suppress(_AnsweredError):
        advise_on(
            template,
            Study(folder),
            AdviseOptions(budget=wanted, **options),  # type: ignore[arg-type]
            executor=world,
            on_news=hear,
            on_answer=answered,
            keeps_model=False,
        )
    return found[0]
