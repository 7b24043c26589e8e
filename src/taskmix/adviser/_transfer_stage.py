"""The stage that finds out which tasks help which, with a small model, if the budget pays for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._probe import Probes
from taskmix.engine import Run
from taskmix.errors import RunError
from taskmix.tasks import TaskSet
from taskmix.transfer import LearningOptions, TransferLessons, learn, train_trials

STAGE = "transfer"


def learn_which_help(
    runs: CandidateRuns,
    probe: Run | None,
    tasks: TaskSet,
    targets: Sequence[str],
    tell: Callable[[str, str], None],  # hears the stage and what it is at
) -> TransferLessons | None:
    """Trains the probe on subsets of the tasks; None, with a note, where that comes to nothing."""
    design = None if probe is None else Probes.of(probe, tasks, targets)
    if design is None:
        return None
    spending = runs.spending
    batches = spending.budget.batches
    price = design.lowest_price
    count, trials = design.affordable(batches, price)
    if count >= design.fewest:  # else measuring it would be a waste
        price = design.price(spending)
        count, trials = design.affordable(batches, price)
    prices = spending.budget.prices
    each = price * (1.0 if prices is None else prices.batch)
    enough = count >= design.fewest
    if not enough or not spending.affords(STAGE, [[each] * trials]):
        runs.notes.append(
            "The budget was too small to study which tasks help which: it would have paid for "
            f"{max(count, 0)} subsets a task, and {design.fewest} are the fewest that tell."
            if not enough
            else "There was no time to study which tasks help which."
        )
        return None
    small = design.probe.architecture != runs.template.architecture
    which = "with a small model" if small else "with the model itself"
    tell(STAGE, f"{count} subsets of each task's sources, {which}.")
    description = design.study(count, runs.first_seed)
    try:
        measured = train_trials(description, runs.study, executor=runs.executor)
        lessons = learn(measured, runs.study, options=LearningOptions(prefixes=0))
    except RunError as error:
        if not runs.timer.is_over():
            raise RunError(runs.words_of_stop()) from error
        spending.settle(STAGE, False)
        runs.notes.append("The time was over before it was known which tasks help which.")
        return None
    spending.batches += len(measured.trials) * price
    return lessons
