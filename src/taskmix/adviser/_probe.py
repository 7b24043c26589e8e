"""The small, fast model on which transfer is studied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from taskmix.adviser._spending import Spending
from taskmix.engine import Run
from taskmix.models import Architecture, Perceptron, TextConvolution, WindowBiLSTM
from taskmix.tasks import TaskSet
from taskmix.transfer import SubsetDesign, TransferStudy
from taskmix.weighting import Equal

PROBE_STEPS = 200  # a batch of every task each: shorter probes have not learned what helps
PROBE_EVALUATIONS = 4  # the best of them counts, so that a probe that overfits is not blamed for it
BUDGET_SHARE = 0.12  # for the whole study: more leaves too few seeds for the race
RUNS_ALONE = 4  # of each task: fewer, and what a task gains by others drowns in the noise
MOST_SUBSETS = 400  # of a task's sources: more tell nothing new of some dozens of tasks
FEWEST_TASKS = 4  # a surrogate wants three sources
LOWEST_PRICE = 0.02  # of a probe's batch, in batches of the model
PRICED_RUNS = 32  # of a study, by which one among many is priced


def probe_of(template: Run) -> Run:
    """A run of the same tasks with a narrower model; one that is not known stays as it is.

    What helps what depends on the model, so the probe is of the same family: fewer filters, shorter
    texts, fewer hidden units.
    """
    architecture = _narrower(template.architecture)
    return replace(
        template,
        label="probe",
        architecture=architecture,
        steps=PROBE_STEPS,
        evaluate_every=PROBE_STEPS // PROBE_EVALUATIONS,
        checkpoint_every=PROBE_STEPS,
        patience=None,
    )


@dataclass(frozen=True, kw_only=True)
class Probes:
    """A study of transfer that an adviser can pay for: subsets of tasks, trained with the probe."""

    probe: Run
    tasks: int
    targets: tuple[str, ...]

    @classmethod
    def of(cls, probe: Run, tasks: TaskSet, targets: Sequence[str]) -> Probes | None:
        """None where there are too few tasks: a surrogate wants three sources."""
        if len(tasks) < FEWEST_TASKS:
            return None
        return cls(probe=probe, tasks=len(tasks), targets=tuple(targets))

    @property
    def size(self) -> int:
        """Tasks of a run: its sources and the target."""
        return SubsetDesign().source_size(self.tasks - 1) + 1

    @property
    def fewest(self) -> int:
        """Subsets of each target's sources below which nothing can be told."""
        return 2 * self.tasks

    @property
    def lowest_price(self) -> float:
        """Of a run, in batches of the model, below which none has been seen."""
        return self.probe.steps * self.size * LOWEST_PRICE

    def price(self, spending: Spending) -> float:
        """Of a run among many, in batches of the model; nothing is measured for a budget of steps."""
        budget = spending.budget
        if spending.meter is None:
            return self.probe.steps * self.size * budget.probe_price
        some = [
            replace(self.probe, tasks=names, weighting=Equal(), policy=None, reward=None, seed=seed)
            for seed, names in enumerate(self._subsets())
        ]
        return spending.in_batches(sum(spending.costs(some)) / len(some))

    def _subsets(self) -> list[tuple[str, ...]]:
        """As many as fill the fleets of some processes."""
        names = self.probe.load().names
        generator = np.random.default_rng(0)
        drawn = (generator.choice(len(names), self.size, replace=False) for _ in range(PRICED_RUNS))
        return [tuple(names[place] for place in sorted(each)) for each in drawn]

    def affordable(self, batches: int, price: float) -> tuple[int, int]:
        """Subsets of each target's sources, and runs in all, for a budget and the price of a run."""
        runs = BUDGET_SHARE * batches / price
        # Each run on a subset is a row of every member where all tasks are targets.
        shared = len(self.targets) == self.tasks
        rows = runs * (self.size / self.tasks if shared else 1 / len(self.targets))
        return min(int(rows * 0.8), MOST_SUBSETS), round(
            runs + RUNS_ALONE * len(self.targets) / self.size
        )

    def study(self, count: int, seed: int) -> TransferStudy:
        design = SubsetDesign(count=count, held_out=max(count // 4, 3), alone=RUNS_ALONE, seed=seed)
        template = replace(self.probe, weighting=Equal())
        return TransferStudy(template=template, targets=self.targets, design=design)


def _narrower(architecture: Architecture) -> Architecture:
    match architecture:
        case Perceptron():
            return replace(architecture, hidden=tuple(min(w, 32) for w in architecture.hidden))
        case TextConvolution():
            return replace(
                architecture,
                filters=min(architecture.filters, 20),
                max_length=min(architecture.max_length, 80),
            )
        case WindowBiLSTM():
            return replace(architecture, hidden=min(architecture.hidden, 32))
        case _:
            return architecture
