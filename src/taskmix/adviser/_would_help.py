"""What would help where nothing was learned: never another way to divide."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taskmix.adviser._learned import Learned
from taskmix.models import Architecture, tuning_of
from taskmix.tasks import TaskSet

ENOUGH_PASSES = 20  # over the rows to train on: small models that learn at all have begun by then
LONGER = 4  # times: what a loss that still falls is given at least
READ_BY_PRETRAINED = {"text", "pair", "tokens"}  # inputs


def what_would_help(
    learned: Sequence[Learned],  # of all targets
    tasks: TaskSet,
    *,
    architecture: Architecture,
    batches: int,  # of a run; 0: no network was trained
    batch_size: int = 32,
) -> str:
    """Sentences for a user who asked for advice and whose tasks are still at a guess."""
    rising = any(each.still_rising for each in learned)
    whose = f"`{learned[0].task}`" if len(learned) == 1 else f"any of the {len(learned)} tasks"
    after = f" after {batches:,} batches" if batches else ""
    words = f"Nothing beat guessing on {whose}{after}"
    words += "; the dev loss still falls." if rising else "."
    rows = max(int(tasks.sizes.sum()), 1)
    helps = [*_better_model(tasks, architecture)]
    if rising or batches * batch_size < ENOUGH_PASSES * rows:
        longer = max(LONGER * batches, math.ceil(ENOUGH_PASSES * rows / batch_size))
        helps.append(
            f"runs of {_rounded_up(longer):,} batches or more (--steps, and the budget for it)"
        )
    else:
        words += (
            " The dev loss no longer falls, so longer runs will not help: the inputs may say nothing of "
            "the labels. See whether every label stands beside its own row."
        )
    needed = [each.rows_needed for each in learned if each.answer == "cannot tell"]
    if most := max((each for each in needed if each is not None), default=0):
        helps.append(f"more dev rows, about {_rounded_up(most):,} a task, to tell at all")
    return f"{words} What would help: {'; '.join([*helps, 'more rows to train on'])}."


def _better_model(tasks: TaskSet, architecture: Architecture) -> list[str]:
    kinds = {task.inputs for task in tasks}
    if not kinds <= READ_BY_PRETRAINED:
        return []
    tuning = tuning_of(architecture)
    if tuning is None:
        what = "encoder" if kinds == {"tokens"} else "model"
        return [f"a pretrained {what} (--model), since this one has to learn the language first"]
    if tuning == "heads":
        return ["tuning more of the encoder than its heads (--tune adapters)"]
    return []


def _rounded_up(number: float) -> int:
    """To two digits: more would claim to be exact."""
    unit = int(10 ** max(len(str(math.ceil(number))) - 2, 0))
    return math.ceil(number / unit) * unit
