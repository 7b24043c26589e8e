r"""Whether anything was learned of a task: a test against a guess, with a power that is stated.

The score compared is the mean over seeds of the best way of training. The bar it has to pass lies so
high that tasks with shuffled labels pass it in one case of twenty at most: scores of a guess are drawn
for as many ways, seeds and evaluations as there were, and the 95 % quantile of the best is taken.

    bar = guess + q · e(guess, rows),   seen = bar + 0.84 · e(guess, rows)

with e the sampling error of the metric on the dev rows. A score of `seen` would pass the bar in 80 %
of cases. Where `seen` is at most three tenths of the way from the guess to a perfect score, staying
below the bar means "no", and so does a score whose 95 % interval ends below three tenths. Elsewhere the
dev rows are too few: "cannot tell", and how many would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from taskmix.adviser._expect import sampling_error
from taskmix.adviser._guess import guessed_score, positives_of, rows_of_metric
from taskmix.adviser._rows import row_deviation
from taskmix.adviser._scores import Entry, comparable, unit_of
from taskmix.records import Study
from taskmix.tasks import Task, TaskSet, find_metric

FALSE_ALARMS = 0.05  # of tasks without anything to learn that may pass as learned
UPPER_END = 1.645  # errors: the normal quantile of 95 %
POWER_ERRORS = 0.8416  # the normal quantile of 80 %
# Of the way from the guess to a perfect score. A smaller share would need more dev rows than most
# tasks have (115 of two even classes at 0.3, 1000 at 0.1), and shuffled tasks would stay in the race.
SHARE_SEEN = 0.3
DRAWS = 4000  # of guesses; the quantile is known to about 0.03 standard errors
# Of scores on the same dev rows under several seeds and at several evaluations. It is not known, so
# the bar is the highest of these.
CORRELATIONS = (0.0, 0.25, 0.5, 0.75, 1.0)

LEAST_FALL = 0.01  # of a loss, from one quarter of a run to the next: less is noise
SURE_AT = 2.0  # standard errors over runs
MEANS_OF_LOSSES = ("bits_per_byte", "log_loss")

Answer = Literal["yes", "no", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What is known of one task."""

    task: str
    answer: Answer
    metric: str
    best: float  # the mean over seeds of the best way; NaN without a score
    guess: float  # NaN where nobody knows
    rows: int  # of dev that the metric is over
    rows_needed: int | None  # so that "no" could be said; None where that is not known
    words: str
    still_rising: bool = False  # the dev loss still fell when the runs ended


def judge_learned(
    entries: Mapping[str, Sequence[Entry]],
    tasks: TaskSet,
    targets: Sequence[str],
    study: Study | None = None,  # with what rows add to losses
    *,
    peers: Mapping[str, Mapping[str, float]] | None = None,  # dev scores of each
) -> tuple[Learned, ...]:
    """Every target that was scored, in their order."""
    ways = {name: [entry.dev for entry in some] for name, some in entries.items()}
    ways |= {name: [scores] for name, scores in (peers or {}).items()}
    return tuple(
        _judge(tasks[name], ways, entries, study)
        for name in targets
        if any(name in scores for some in ways.values() for scores in some)
    )


def learned_together(
    tasks: TaskSet, targets: Sequence[str], ways: Mapping[str, Sequence[Mapping[str, float]]]
) -> bool:
    """Whether the mean over the targets lies above guesses': few rows of each may tell together."""
    errors, guesses = dict[str, float](), dict[str, float]()
    for name in targets:
        task = tasks[name]
        guess, rows = guessed_score(task), rows_of_metric(task)
        if not math.isfinite(guess) or not rows:
            return False
        guesses[name] = comparable(task, guess)
        value = max(guess, 1 / (rows + 2)) if find_metric(task.metric).higher_is_better else guess
        error = sampling_error(task.metric, value, rows, positives=positives_of(task))
        errors[name] = abs(unit_of(task)) * error
    bar = bar_of_guesses(tuple((len(some), 1) for some in ways.values()))
    whole = math.sqrt(sum(error**2 for error in errors.values()))
    for some in ways.values():
        if all(name in scores for scores in some for name in targets):
            means = [sum(comparable(tasks[n], s[n]) for n in targets) for s in some]
            if float(np.mean(means)) - sum(guesses.values()) > bar * whole:
                return True
    return False


def unlearned(learned: Sequence[Learned]) -> tuple[str, ...]:
    """The tasks of which nothing was learned."""
    return tuple(each.task for each in learned if each.answer == "no")


def _judge(
    task: Task,
    ways: Mapping[str, Sequence[Mapping[str, float]]],
    entries: Mapping[str, Sequence[Entry]],
    study: Study | None,
) -> Learned:
    better = 1.0 if find_metric(task.metric).higher_is_better else -1.0
    means, looks = [], []
    for some in ways.values():
        scores = [each[task.name] for each in some if task.name in each]
        scores = [score for score in scores if math.isfinite(score)]
        if scores:
            means.append(better * float(np.mean(scores)))
            looks.append((len(scores), 1))
    guess, rows = guessed_score(task), rows_of_metric(task)
    best = better * max(means) if means else math.nan
    if not math.isfinite(guess) or not means or not rows:
        words = f"`{task.name}`: what a guess would score is not known, so nobody can tell."
        return Learned(
            task=task.name,
            answer="cannot tell",
            metric=task.metric,
            best=best,
            guess=guess,
            rows=rows,
            rows_needed=None,
            words=words,
        )
    # A guess of 0 has an error as well: one row more could have been right.
    value = max(guess, 1 / (rows + 2)) if better > 0 else guess
    error = sampling_error(task.metric, value, rows, positives=positives_of(task))
    if task.metric in MEANS_OF_LOSSES and study is not None:
        # How far losses of rows lie apart is known, and most often far less than they are large.
        spread = [row_deviation(some, task.name, study) for some in entries.values()]
        known = [each for each in spread if each is not None]
        error = max(known) / math.sqrt(rows) if known else error
    height = bar_of_guesses(tuple(looks))
    perfect = 1.0 if better > 0 else 0.0
    wanted = max(SHARE_SEEN * abs(perfect - guess), 1e-12)
    needed = math.ceil(rows * ((height + POWER_ERRORS) * error / wanted) ** 2)
    rises = still_rising(task.name, entries)
    # Few rows say no as well where even the upper end of the best way's score lies below.
    is_below = better * (best - guess) + UPPER_END * error < wanted
    answer: Answer = "no" if needed <= rows or is_below else "cannot tell"
    if better * (best - guess) > height * error:
        answer = "yes"
    found = f"the best way has {task.metric} {best:.3f}, a guess {guess:.3f}"
    seen = guess + better * wanted
    words = {
        "yes": f"`{task.name}` was learned: {found}.",
        "no": f"Nothing was learned of `{task.name}`{' yet' if rises else ''}: {found}, and "
        + (
            f"{seen:.3f} would have been seen with 80 % power in {rows:,} dev rows."
            if needed <= rows
            else f"{seen:.3f} lies above its 95 % interval in {rows:,} dev rows."
        ),
        "cannot tell": f"Cannot tell whether anything was learned of `{task.name}`: {found}; to see "
        f"{seen:.3f} with 80 % power, about {needed:,} dev rows would do, and there are {rows:,}.",
    }[answer]
    if rises and answer != "yes":
        words += " The dev loss still fell when the runs ended."
    return Learned(
        task=task.name,
        answer=answer,
        metric=task.metric,
        best=best,
        guess=guess,
        rows=rows,
        rows_needed=needed,
        words=words,
        still_rising=rises,
    )


def still_rising(task: str, entries: Mapping[str, Sequence[Entry]]) -> bool:
    """Whether the dev loss still fell at the ends of the runs that are for the task.

    The loss is a better witness than the metric: entity F1 stays at 0 while the loss of the tags falls.
    """
    falls = [entry.loss_fell.get(task, math.nan) for some in entries.values() for entry in some]
    falls = [fall for fall in falls if math.isfinite(fall)]
    if not falls:
        return False
    mean = float(np.mean(falls))
    error = float(np.std(falls, ddof=1)) / math.sqrt(len(falls)) if len(falls) > 1 else 0.0
    return mean >= LEAST_FALL and mean >= SURE_AT * error


@lru_cache(maxsize=256)
def bar_of_guesses(looks: tuple[tuple[int, int], ...]) -> float:
    """Standard errors above a guess that the best of many guesses reaches in 5 % of cases.

    `looks` has the seeds and the evaluations of each way: a way's score is the mean over seeds of
    the best evaluation. Ways count as independent, seeds and evaluations as alike as is worst.
    """
    from scipy.special import ndtri

    generator = np.random.default_rng(0)
    best = np.full((len(CORRELATIONS), DRAWS), -np.inf)
    root = np.sqrt(np.array(CORRELATIONS))[:, None]
    for seeds, evaluations in looks:
        # The largest of n uniform numbers is distributed as the n-th root of one.
        largest = ndtri(generator.random((DRAWS, seeds)) ** (1 / evaluations)).mean(axis=1)
        common = generator.normal(size=DRAWS)
        best = np.maximum(best, root * common + np.sqrt(1 - root**2) * largest)
    return float(np.quantile(best, 1 - FALSE_ALARMS, axis=1).max())
