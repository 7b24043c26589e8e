"""What would help where no way of training has learned anything: never another way of training."""

from __future__ import annotations

import math
from collections.abc import Sequence

from taskmix.adviser._learned import Learned
from taskmix.models import Architecture, tuning_of
from taskmix.tasks import TaskSet

ENOUGH_PASSES = 20  # over the rows to train on: small models that learn at all have begun by then
LONGER = 4  # times: what a loss that still falls is given at least
READ_BY_PRETRAINED = ("text", "pair", "tokens")  # inputs


def what_would_help(
    learned: Sequence[Learned],  # of all targets
    tasks: TaskSet,
    *,
    architecture: Architecture,
    batches: int,  # of a run
    batch_size: int = 32,
) -> str:
    """Sentences for a user who asked for advice and whose tasks are still at a guess."""
    rising = [each for each in learned if each.still_rising]
    rows = max(int(tasks.sizes.sum()), 1)
    short = batches * batch_size < ENOUGH_PASSES * rows
    begun = [_first_words(learned, batches, rising)]
    helps = [*_better_model(tasks, architecture)]
    if rising or short:
        longer = max(LONGER * batches, math.ceil(ENOUGH_PASSES * rows / batch_size))
        helps.append(
            f"runs of {_round_up(longer):,} batches or more (--steps, and the budget for it)"
        )
    unclear = [each for each in learned if each.answer == "cannot tell" and each.rows_needed]
    if unclear:
        most = max(each.rows_needed or 0 for each in unclear)
        helps.append(f"more dev rows, about {_round_up(most):,} a task, to tell at all")
    helps.append("more rows to train on")
    if not rising and not short:
        begun.append(
            "The dev loss no longer falls, so longer runs will not help: the inputs may say nothing of "
            "the labels. See whether every label stands beside its own row."
        )
    return " ".join([*begun, f"What would help: {'; '.join(helps)}."])


def _first_words(learned: Sequence[Learned], batches: int, rising: Sequence[Learned]) -> str:
    whose = f"`{learned[0].task}`" if len(learned) == 1 else f"any of the {len(learned)} tasks"
    if any(each.answer == "cannot tell" for each in learned):
        return f"After {batches:,} batches no way is seen to have learned anything of {whose}."
    words = f"Nothing was learned {'yet ' if rising else ''}of {whose} after {batches:,} batches"
    if rising:
        words += "; the dev loss still falls"
        words += "" if len(rising) == len(learned) else f" on {len(rising)} of them"
    return f"{words}."


def _better_model(tasks: TaskSet, architecture: Architecture) -> list[str]:
    kinds = {task.inputs for task in tasks}
    if not kinds <= set(READ_BY_PRETRAINED):
        return []
    tuning = tuning_of(architecture)
    if tuning is None:
        what = "encoder" if kinds == {"tokens"} else "model"
        return [f"a pretrained {what} (--model), since this one has to learn the language first"]
    if tuning == "heads":
        return ["tuning more of the encoder than its heads (--tune adapters)"]
    return []


def _round_up(number: float) -> int:
    """To two digits: more would claim to be exact."""
    unit = int(10 ** max(len(str(math.ceil(number))) - 2, 0))
    return math.ceil(number / unit) * unit
