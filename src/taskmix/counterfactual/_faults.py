r"""Logs whose probabilities cannot be right, found and told in words.

Whatever the logger did, a visit to task k counts 1/π, and over T rows the sum B of a task has the mean
T: at every row the task is drawn with probability π and then counts 1/π. The sum of 1/π − 1 over all
rows is its variance, of which E − B (over the visits) is an unbiased estimate, so

$$z_k = (B_k - T) / \sqrt{E_k - B_k}$$

is about standard normal (a martingale, so an adaptive logger changes nothing). Probabilities taken
before exhausted tasks were masked out, or before the uniform part was mixed in, show here.

The two sides are not alike. If the logged probabilities are not the true ones, yet sum to one, some task
was drawn more often than logged, and its z is far above zero: that is refused. A z far below zero alone
has an innocent cause as well, a task whose probability was next to nothing in a part of the log, where
it was never drawn and so left no trace: that is doubtful. It is refused where it is so of every task,
as with probabilities that sum to more than one or choices that were never drawn at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import InputError

REFUSED_AT = 6.0  # standard errors: two logs in a thousand million, for each task
DOUBTED_AT = 4.0  # standard errors: six sound logs in a hundred thousand, for each task
FEW_VISITS = 30  # with fewer the mean of a task's rewards has no normal distribution
NAMES_IN_SENTENCE = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a log, or may be."""

    weight: Literal["refused", "doubtful"]
    sentence: str


def find_faults(
    statistics: LogStatistics,  # of one log or of several together, [task]
    names: Sequence[str] | None = None,
) -> tuple[Fault, ...]:
    """Everything wrong with a log, the worst first.

    >>> log = sum_log([0] * 400 + [1] * 400, [0.0] * 800, [0.5] * 400 + [0.2] * 400, task_count=2)
    >>> [fault.weight for fault in find_faults(log)]  # 1/π of the second sums to 2000, not 800
    ['refused']
    """
    called = list(names) if names is not None else [str(k) for k in range(len(statistics.visits))]
    rows = int(statistics.rows)
    if rows == 0:
        return (
            Fault("refused", "A log should have rows with a reward. Found none: run some steps."),
        )
    refused: list[Fault] = []
    doubtful: list[Fault] = []
    low: list[Fault] = []
    rare: list[str] = []
    for task, name in enumerate(called):
        visits = int(statistics.visits[task])
        if visits == 0:
            refused.append(
                Fault(
                    "refused",
                    f"Every task should have been tried. Found no row of `{name}` with a reward: "
                    "log a run that tries it, or leave it out.",
                )
            )
            continue
        if visits < FEW_VISITS:
            rare.append(f"`{name}`")
        if statistics.clipped[task]:
            continue  # cut-off weights no longer have the mean they should
        score = _score(statistics, task, rows)
        if abs(score) < DOUBTED_AT:
            continue
        found = (
            f"The weights 1/π of `{name}` should have the mean 1 over the rows. Found "
            f"{statistics.weight[task] / rows:.3f}, {abs(score):.1f} standard errors away: "
        )
        wrong = "the logged probabilities are not those the tasks were drawn with."
        if score > REFUSED_AT:
            refused.append(Fault("refused", found + wrong))
        elif score < -REFUSED_AT:
            low.append(Fault("refused", found + wrong))
            hidden = "it was hardly ever drawn in a part of the log, its value is that of the rest."
            doubtful.append(Fault("doubtful", found + hidden))
        else:
            doubtful.append(Fault("doubtful", found + wrong))
    if len(low) == len(called):
        return tuple(low)
    if rare:
        listed = ", ".join(rare[:NAMES_IN_SENTENCE]) + (
            " and others" if len(rare) > NAMES_IN_SENTENCE else ""
        )
        doubtful.append(
            Fault(
                "doubtful",
                f"Little is known of {listed}: {len(rare)} of {len(called)} tasks were tried fewer "
                f"than {FEW_VISITS} times.",
            )
        )
    return (*refused, *doubtful)


def _score(statistics: LogStatistics, task: int, rows: int) -> float:
    """By how many standard errors the weights of a task miss their mean."""
    variance = float(statistics.weight_squared[task] - statistics.weight[task])
    gap = float(statistics.weight[task]) - rows
    # Where the probability was always one there is no variance, and no gap but by rounding.
    return float(gap / np.sqrt(variance) if variance > 1e-9 * rows else gap / rows * 1e9)


def check_log(statistics: LogStatistics, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Raises where a log has to be refused; gives back what is doubtful about it.

    >>> check_log(sum_log([0] * 400 + [1] * 400, [0.0] * 800, [0.5] * 800, task_count=2))
    ()
    >>> check_log(sum_log([0], [0.0], [0.5], task_count=2), ["a", "b"])
    Traceback (most recent call last):
        ...
    taskmix.errors.InputError: Every task should have been tried. Found no row of ...
    """
    faults = find_faults(statistics, names)
    refused = [fault.sentence for fault in faults if fault.weight == "refused"]
    if refused:
        more = f" And {len(refused) - 1} more such faults." if len(refused) > 1 else ""
        raise InputError(refused[0] + more)
    return tuple(fault.sentence for fault in faults)
