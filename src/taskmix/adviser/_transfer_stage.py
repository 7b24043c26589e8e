"""The stage that finds out which tasks help which, with a small model, if the budget pays for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taskmix.adviser._candidate_runs import CandidateRuns
from taskmix.adviser._probe import BUDGET_SHARE, COUNTED, PRICED_RUNS, Probes
from taskmix.engine import Run
from taskmix.errors import RunError
from taskmix.tasks import TaskSet
from taskmix.transfer import LearningOptions, TransferLessons, learn, train_trials

STAGE = "transfer"
NO_TIME = "There was no time to study which tasks help which."


def learn_which_help(
    runs: CandidateRuns,
    probe: Run,
    tasks: TaskSet,
    targets: Sequence[str],
    tell: Callable[[str, str], None],  # hears the stage and what it is at
) -> TransferLessons | None:
    """Trains the probe on subsets of the tasks; None, with a note, where that comes to nothing."""
    design = Probes.of(probe, tasks, targets)
    if design is None:
        return None
    spending = runs.spending
    if spending.by_clock and STAGE not in spending.ledger.decisions:
        begin = runs.timer.used()
        few = design.some(1)[0].load()
        probe.architecture.encoding.encode(few)
        encoding = runs.timer.used() - begin  # every subset is encoded by itself
        if encoding * PRICED_RUNS > BUDGET_SHARE * spending.left:
            runs.notes.append(NO_TIME)
            return None
    price = spending.price(STAGE, design.some, PRICED_RUNS * design.size, counted=COUNTED)
    batches = design.some(probe.steps)[0].cost
    count = 0
    if price is not None:
        most = BUDGET_SHARE * spending.left / max(spending.cost(STAGE, batches), 1e-9)
        count, _ = design.affordable(most)
        count = int(spending.ledger.decisions.get(STAGE, count)) if spending.by_clock else count
    if count < design.fewest:
        runs.notes.append(
            "The budget was too small to study which tasks help which: it would have paid for "
            f"{max(count, 0)} subsets a task, and {design.fewest} are the fewest that tell."
        )
        return None
    if spending.by_clock:
        spending.ledger.settle(STAGE, count, seconds=runs.timer.used())
    small = design.probe.architecture != runs.template.architecture
    which = "with a small model" if small else "with the model itself"
    tell(STAGE, f"{count} subsets of each task's sources, {which}.")
    begin = runs.timer.used()
    try:
        measured = train_trials(
            design.study(count, runs.first_seed), runs.study, executor=runs.executor
        )
        lessons = learn(measured, runs.study, options=LearningOptions(prefixes=0))
    except RunError as error:
        if not runs.timer.is_over():
            raise RunError(runs.words_of_stop()) from error
        runs.notes.append("The time was over before it was known which tasks help which.")
        return None
    spending.spend(STAGE, batches, len(measured.trials), runs.timer.used() - begin)
    return lessons
