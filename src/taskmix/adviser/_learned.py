r"""Whether anything was learned of a task: a test against a guess, with a power that is stated.

The score compared is the best of all candidates, each the mean over its seeds, and of all shallow
models. The bar it has to pass lies so high that tasks with shuffled labels pass it in one case of twenty
at most: it is the 95 % quantile of the best of as many guesses, which count as independent.

    bar = guess + q · e(guess, rows),  q = Φ⁻¹(0.95^(1/n)),   seen = bar + 0.84 · e(guess, rows)

with n the candidates and e the sampling error of the metric on the dev rows. A score of `seen` would
pass the bar in 80 % of cases. Where `seen` is at most three tenths of the way from the guess to a
perfect score, staying below the bar means "no", and so does a score whose 95 % interval ends below that.
Elsewhere the dev rows are too few: "cannot tell", and how many would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from taskmix.adviser._expect import sampling_error
from taskmix.adviser._guess import guessed_score, positives_of, rows_of_metric
from taskmix.adviser._rows import row_deviation
from taskmix.adviser._scores import ByTask, Entries, comparable, unit_of
from taskmix.records import Study
from taskmix.tasks import Task, TaskSet, find_metric

FALSE_ALARMS = 0.05  # of tasks without anything to learn that may pass as learned
UPPER_END = 1.645  # errors: the normal quantile of 95 %
POWER_ERRORS = 0.8416  # the normal quantile of 80 %
# Of the way from the guess to a perfect score. A smaller share would need more dev rows than most
# tasks have (115 of two even classes at 0.3, 1000 at 0.1), and shuffled tasks would stay in the race.
SHARE_SEEN = 0.3
LEAST_FALL = 0.01  # of a loss, from one quarter of a run to the next: less is noise
SURE_AT = 2.0  # standard errors over runs
MEANS_OF_LOSSES = ("bits_per_byte", "log_loss")

Answer = Literal["yes", "no", "cannot tell"]
Ways = Mapping[str, Sequence[ByTask]]  # dev scores of each candidate, by seed


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What is known of one task."""

    task: str
    answer: Answer
    best: float  # the mean over seeds of the best candidate; NaN without a score
    guess: float  # NaN where nobody knows
    rows_needed: int | None  # so that "no" could be said; None where that is not known
    words: str
    still_rising: bool = False  # the dev loss still fell when the runs ended


@dataclass(frozen=True, kw_only=True)
class _Guess:
    """What a guess scores on a task's dev rows, and how far that may be off."""

    value: float
    error: float
    rows: int

    @classmethod
    def of(cls, task: Task) -> _Guess | None:
        """None where nobody knows, or where a guess is perfect: such rows say nothing."""
        value, rows = guessed_score(task), rows_of_metric(task)
        upwards = find_metric(task.metric).higher_is_better
        if not rows or not math.isfinite(value) or abs(value - upwards) < 1e-9:
            return None
        # A guess of 0 has an error as well: one row more could have been right.
        usual = max(value, 1 / (rows + 2)) if upwards else value
        error = sampling_error(task.metric, usual, rows, positives=positives_of(task))
        return cls(value=value, error=error, rows=rows)


def judge_learned(
    entries: Entries,
    tasks: TaskSet,
    targets: Sequence[str],
    study: Study | None = None,  # with what rows add to losses
    *,
    peers: Mapping[str, ByTask] | None = None,  # dev scores of each
) -> tuple[Learned, ...]:
    """Every target that was scored, in their order."""
    ways = {name: [entry.dev for entry in some] for name, some in entries.items()}
    ways |= {name: [scores] for name, scores in (peers or {}).items()}
    return tuple(
        _judge(tasks[name], ways, entries, study)
        for name in targets
        if any(name in scores for some in ways.values() for scores in some)
    )


def learned_together(tasks: TaskSet, targets: Sequence[str], ways: Ways) -> bool:
    """Whether the mean over the targets lies above guesses': few rows of each may tell together."""
    found = {name: _Guess.of(tasks[name]) for name in targets}
    known = {name: guess for name, guess in found.items() if guess is not None}
    if len(known) < len(found) or not known:
        return False
    whole = math.sqrt(sum((unit_of(tasks[n]) * guess.error) ** 2 for n, guess in known.items()))
    level = sum(comparable(tasks[n], guess.value) for n, guess in known.items())
    means = [
        np.mean([sum(comparable(tasks[name], scores[name]) for name in known) for scores in some])
        for some in ways.values()
        if all(name in scores for scores in some for name in known)
    ]
    return bool(means) and float(max(means)) - level > bar_of_guesses(len(means)) * whole


def unlearned(learned: Sequence[Learned]) -> tuple[str, ...]:
    """The tasks of which nothing was learned."""
    return tuple(each.task for each in learned if each.answer == "no")


def bar_of_guesses(count: int) -> float:
    """Standard errors above a guess that the best of so many guesses reaches in 5 % of cases."""
    from scipy.special import ndtri

    return float(ndtri((1 - FALSE_ALARMS) ** (1 / count)))


def _judge(task: Task, ways: Ways, entries: Entries, study: Study | None) -> Learned:
    better = 1.0 if find_metric(task.metric).higher_is_better else -1.0
    own = [[each.get(task.name, math.nan) for each in some] for some in ways.values()]
    known = [[score for score in scores if math.isfinite(score)] for scores in own]
    means = [better * float(np.mean(scores)) for scores in known if scores]
    best = better * max(means) if means else math.nan
    guess = _Guess.of(task)
    if guess is None or not means:
        words = f"`{task.name}`: its dev rows cannot tell anything from a guess."
        return Learned(
            task=task.name,
            answer="cannot tell",
            best=best,
            guess=guessed_score(task),
            rows_needed=None,
            words=words,
        )
    error, rows = guess.error, guess.rows
    if task.metric in MEANS_OF_LOSSES and study is not None:
        # How far losses of rows lie apart is known, and most often far less than they are large.
        spread = [row_deviation(some, task.name, study) for some in entries.values()]
        error = max((e for e in spread if e is not None), default=error * math.sqrt(rows))
        error /= math.sqrt(rows)
    height = bar_of_guesses(len(means))
    wanted = SHARE_SEEN * abs((better > 0) - guess.value)
    needed = math.ceil(rows * ((height + POWER_ERRORS) * error / wanted) ** 2)
    rises = still_rising(task.name, entries)
    gain = better * (best - guess.value)
    # Few rows say no as well where even the upper end of the best score lies below.
    answer: Answer = "no" if needed <= rows or gain + UPPER_END * error < wanted else "cannot tell"
    if gain > height * error:
        answer = "yes"
    found = f"the best {task.metric} is {best:.3f}, a guess's {guess.value:.3f}"
    seen = guess.value + better * wanted
    words = {
        "yes": f"`{task.name}` was learned: {found}.",
        "no": f"Nothing was learned of `{task.name}`{' yet' if rises else ''}: {found}, and "
        + (
            f"{seen:.3f} would have been seen with 80 % power in {rows:,} dev rows."
            if needed <= rows
            else f"{seen:.3f} lies above its 95 % interval in {rows:,} dev rows."
        ),
        "cannot tell": f"Too few dev rows to know whether `{task.name}` was learned: {found}; "
        f"to see {seen:.3f} with 80 % power, about {needed:,} would do, and there are {rows:,}.",
    }[answer]
    if rises and answer != "yes":
        words += " The dev loss still fell when the runs ended."
    return Learned(
        task=task.name,
        answer=answer,
        best=best,
        guess=guess.value,
        rows_needed=needed,
        words=words,
        still_rising=rises,
    )


def still_rising(task: str, entries: Entries) -> bool:
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
