"""How long the runs of candidates are: what the budget allows, and what the rows are good for."""

from __future__ import annotations

from dataclasses import dataclass

from taskmix.adviser._candidates import evaluated_rows
from taskmix.engine import Run
from taskmix.models import Perceptron
from taskmix.tasks import TaskSet

EVALUATIONS_PER_RUN = range(8, 1, -1)  # as many as are cheap; with one, no curve is known
# Of a run's time, at most, where that leaves two evaluations: what they take is missing for training.
EVALUATION_SHARE = 0.25
# Evaluated rows that cost as much as one trained on, as they need no way back. Too many here, and
# evaluations take more than their share.
EVALUATED_PER_TRAINED = 3
# Runs that a budget should pay for, the most first: fewer would leave too few for a race, and more would
# be shorter. Where runs of the wished length are too long for that, fewer are planned, step by step.
RUNS_PER_BUDGET = range(32, 13, -3)
WISHED_PASSES = 3  # over all rows: in shorter runs, candidates have not parted yet
MOST_PASSES = 60  # over all rows: longer runs only memorise them, at the price of seeds
FEWEST_BATCHES_OF_A_TASK = 24  # in a run: with fewer, what is compared is where training began
FEW_ROWS = 4_000  # of all tasks, on which a small model trains faster than a process starts


def useful_workers(template: Run, workers: int | None) -> int | None:
    """How many processes advice should have, where the user does not say: on few rows one is fastest.

    >>> from taskmix.engine import DigitsSource, Run
    >>> from taskmix.models import Perceptron
    >>> source = DigitsSource(tasks=("parity", "half"))
    >>> run = Run(label="template", source=source, architecture=Perceptron(), steps=1, seed=0)
    >>> useful_workers(run, None), useful_workers(run, 2)
    (1, 2)
    """
    small = isinstance(template.architecture, Perceptron) and template.device == "cpu"
    if workers is None and small and int(template.load().sizes.sum()) <= FEW_ROWS:
        return 1
    return workers


def cheap_evaluations(tasks: TaskSet, batches: int, batch_size: int) -> int:
    """How often a run can be evaluated for a part of what its training costs; twice in any case.

    >>> from taskmix.tasks import digits_tasks
    >>> cheap_evaluations(digits_tasks(), batches=1, batch_size=8)
    2
    """
    rows = evaluated_rows(tasks, 1) - evaluated_rows(tasks, 0)
    affordable = EVALUATION_SHARE * EVALUATED_PER_TRAINED * batches * batch_size / max(rows, 1)
    return int(min(max(affordable, EVALUATIONS_PER_RUN[-1]), EVALUATIONS_PER_RUN[0]))


@dataclass(frozen=True)
class RunLength:
    """Of every candidate, over all its models."""

    batches: int
    evaluations: int


def wished_batches(tasks: TaskSet, batch_size: int) -> tuple[int, int, int]:
    """The fewest that tell anything, those wished for, and the most that are good for anything."""
    fewest = FEWEST_BATCHES_OF_A_TASK * len(tasks)
    wished, most = (
        max(passes * int(tasks.sizes.sum()) // batch_size, fewest)
        for passes in (WISHED_PASSES, MOST_PASSES)
    )
    return fewest, wished, most


def choose_length(
    tasks: TaskSet,
    longest: list[
        int
    ],  # batches of a run of which the budget pays for as many as `RUNS_PER_BUDGET`
    *,
    batch_size: int,
    batches: int | None,  # where they were asked for
) -> RunLength:
    """What the budget allows, and no more than some passes over all rows."""
    fewest, wished, most = wished_batches(tasks, batch_size)
    found = next((length for length in longest if length >= wished), longest[-1])
    chosen = batches or max(min(found, most), fewest)
    return RunLength(chosen, cheap_evaluations(tasks, chosen, batch_size))
