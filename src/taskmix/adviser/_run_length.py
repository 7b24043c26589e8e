"""How long the runs of candidates are: what the budget allows, and what the rows are good for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from taskmix.adviser._budget import (
    END_SECONDS,
    END_SHARE,
    Budget,
    PricedBudget,
    Timer,
    makespan,
)
from taskmix.adviser._candidates import EVALUATIONS_PER_RUN, cheap_evaluations, evaluated_rows
from taskmix.adviser._race import Race
from taskmix.adviser._spending import Spending
from taskmix.engine import Run
from taskmix.models import Perceptron
from taskmix.tasks import TaskSet

# Runs that a budget should pay for, the most first: fewer would leave too few for a race, and more would
# be shorter. Where runs of the wished length are too long for that, fewer are planned, step by step.
RUNS_PER_BUDGET = range(36, 23, -2)
WISHED_PASSES = 3  # over all rows: in shorter runs, ways of training have not parted yet
MOST_PASSES = 20  # over all rows: longer runs only memorise them, at the price of seeds
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


@dataclass(frozen=True)
class RunLength:
    """Of every candidate, over all its models."""

    batches: int
    evaluations: int


def choose_length(
    tasks: TaskSet,
    budget: PricedBudget,
    *,
    batch_size: int,
    batches: int | None,  # where they were asked for
) -> RunLength:
    """What the budget allows, and no more than some passes over all rows."""
    wished, most = (
        passes * int(tasks.sizes.sum()) // batch_size for passes in (WISHED_PASSES, MOST_PASSES)
    )
    fewest = FEWEST_BATCHES_OF_A_TASK * len(tasks)
    for number in EVALUATIONS_PER_RUN:  # the longer a run, the more evaluations it affords
        rows = evaluated_rows(tasks, number)
        lengths = [budget.affordable(budget.share(runs), rows) for runs in RUNS_PER_BUDGET]
        longest = next((length for length in lengths if length >= wished), lengths[-1])
        found = RunLength(batches or max(min(longest, most), fewest), number)
        if cheap_evaluations(tasks, found.batches, batch_size) >= number:
            break
    return found


def words_of_too_small_budget(
    asked: Budget,
    budget: PricedBudget,
    timer: Timer,
    batches: int,
    costs: Sequence[Sequence[float]],  # of the runs of each way of training
) -> str:
    """The sentence for a budget that does not pay for the first ways of training."""
    should = f"The budget should pay for {len(costs)} ways of training of {batches:,} batches each"
    if asked.seconds is None:
        total = round(sum(map(sum, costs)))
        return (
            f"{should}. Found {budget.batches:,} steps. Give at least {total:,}-steps, or shorter runs "
            "with `steps`."
        )
    work = makespan([cost for group in costs for cost in group], budget.workers)
    needed = (timer.used() + work + END_SECONDS) / (1 - END_SHARE)
    return (
        f"{should}, which takes about {math.ceil(needed)} s here. Found {asked.seconds:g} s. Give a "
        "larger `budget`, or shorter runs with `steps`."
    )


def words_of_end(race: Race, spending: Spending, *, most_seeds: int) -> str:
    """Why no more is trained, and what of the budget is left."""
    open_ways, seeds = len(race.open), race.leader.seeds
    unspent = f" {1 - spending.share:.0%} of the budget is left." if spending.share < 0.9 else ""
    if open_ways == 1:
        return f"The race is settled: {race.leader.name} leads.{unspent}"
    if seeds >= most_seeds:
        return (
            f"{open_ways} ways may be the best after {seeds} seeds: whatever the difference is, it is "
            f"small, and more seeds would hardly tell.{unspent}"
        )
    return f"What is left does not pay for one more seed of {open_ways} ways that may be the best."
