"""The small, fast model on which transfer is studied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

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
COUNTED = 0.02  # of a probe's batch in a budget of steps: hundreds of them train in one fleet
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

    def some(self, steps: int) -> list[Run]:
        """As many as fill the fleets of some processes, of so many steps."""
        names = self.probe.load().names
        generator = np.random.default_rng(0)
        drawn = (generator.choice(len(names), self.size, replace=False) for _ in range(PRICED_RUNS))
        return [
            replace(
                self.probe,
                tasks=tuple(names[place] for place in sorted(each)),
                weighting=Equal(),
                policy=None,
                reward=None,
                seed=seed,
                steps=steps,
                evaluate_every=max(steps // PROBE_EVALUATIONS, 1),
            )
            for seed, each in enumerate(drawn)
        ]

    def affordable(self, runs: float) -> tuple[int, int]:
        """Subsets of each target's sources, and runs in all, where so many runs can be paid for."""
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
