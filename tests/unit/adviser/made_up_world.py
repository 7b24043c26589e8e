"""Executors that train nothing: scores are made up, and written as any run's are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from taskmix.adviser import Advised, AdviseOptions, Budget, News, advise_on
from taskmix.engine import DigitsSource, Executed, Run, TaskSource
from taskmix.models import Architecture, Perceptron
from taskmix.records import Study
from taskmix.tasks import Split, Task, TaskSet

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
    metric: str = "accuracy"
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
            final, best = {name: self.scorer(run, name) for name in names}, run.steps
            if self.curve is not None:
                curve = self._evaluate(run, names)
                for step, values in curve.items():
                    writer.add_scores(
                        step, [(n, "dev", self.metric, value + luck) for n, value in values.items()]
                    )
                best = max(curve, key=lambda step: sum(curve[step].values()))
                final = curve[best]
            scores = [
                (name, split, metric, 1 - value if metric == "loss" else value)
                for name in names
                for value in [final[name] + luck]
                for split in ("dev", "test")
                for metric in (self.metric, "loss")
            ]
            writer.finish(scores=scores, best_step=best, step=run.steps)
        return Executed(outcome="finished", summary=folder.summary())

    def _evaluate(self, run: Run, names: Sequence[str]) -> dict[int, dict[str, float]]:
        assert self.curve is not None
        steps = sorted({max(run.steps * part // 8, 1) for part in range(1, 9)})
        return {
            step: {name: self.curve(run, name, run.cost_of(step)) for name in names}
            for step in steps
        }


@dataclass(frozen=True)
class Given:
    """A source of tasks that are there already."""

    tasks: tuple[Task, ...]

    def __init__(self, *tasks: Task) -> None:
        object.__setattr__(self, "tasks", tasks)

    def load(self) -> TaskSet:
        return TaskSet(self.tasks)


def classes(
    name: str, rows: int, share: float = 0.5, metric: str = "accuracy", *, tells: bool = False
) -> Task:
    """Two classes, so many of the second; a column of its own may tell which."""
    targets = (np.arange(rows) < share * rows).astype(np.int64)
    inputs = np.random.default_rng(sum(map(ord, name))).normal(size=(3, rows))
    splits = {
        split: Split(
            pa.table({"x": values, "y": targets.astype(float) if tells else values}), targets
        )
        for split, values in zip(("train", "dev", "test"), inputs, strict=True)
    }
    return Task(
        name=name,
        kind="classification",
        inputs="table",
        labels=("no", "yes"),
        metric=metric,
        source=name,
        splits=splits,
    )


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
