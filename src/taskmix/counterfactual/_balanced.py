r"""Logs of several policies pooled as if one logger, their mixture, had drawn all rows.

    Agarwal, Basu, Schnabel and Joachims, "Effective Evaluation using Logged Bandit Feedback from
    Multiple Loggers", KDD 2017, Section 5 (the balanced estimator).

With $n_l$ rows of logger $l$, which drew task k with probability $\pi_l(k)$, the mixture is
$\pi_{avg}(k) = \sum_l n_l \pi_l(k) / \sum_l n_l$, and every row of task k weighs $p_k/\pi_{avg}(k)$
whichever logger drew it. A logger that hardly ever tries a task no longer brings weights as large as its
probabilities are small: the value is unbiased, like that of the sums added up, and its variance is never
larger (the paper's theorem there).

The mixture asks every logger for the probability of every row. A log has that of the drawn task only, so
a logger should have kept to its shares: a policy that learns while it logs is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.counterfactual._statistics import LogStatistics, stack
from taskmix.errors import InputError, ShapeError
from taskmix.numerics import as_distribution

CHANGED_AT = 1e-9  # the variance of 1/π over its squared mean, that rounding stays below


def balanced(
    logs: Sequence[LogStatistics],  # [task] each, of loggers that kept to their shares
    *,
    shares: ArrayLike | None = None,  # [log, task]; as logged without it
) -> LogStatistics:
    """The sums of all `logs` together, weighted by the mixture of their loggers.

    They go where the sum of the logs would: `estimate`, `compare` and `maximise`. Without `shares` a
    task that a logger never drew counts as one it could not draw.

    >>> one = sum_log([0, 0, 0, 1], [1.0, 1.0, 1.0, 3.0], [0.75, 0.75, 0.75, 0.25], task_count=2)
    >>> other = sum_log([0, 1, 1, 1], [1.0, 3.0, 3.0, 3.0], [0.25, 0.75, 0.75, 0.75], task_count=2)
    >>> both = balanced([one, other])  # the mixture draws either task with probability 0.5
    >>> both.weight.tolist(), (one + other).weight.round(2).tolist()
    ([8.0, 8.0], [8.0, 8.0])
    >>> both.largest_weight.tolist(), (one + other).largest_weight.tolist()
    ([2.0, 2.0], [4.0, 4.0])
    """
    if not logs:
        raise InputError("There should be at least one log to pool. Found none.")
    parts = stack(list(logs))
    drawn = _shares(parts)
    if shares is not None:
        drawn = _checked(as_distribution(shares, name="shares"), drawn)
    rows = parts.rows[:, None]
    mixture = (rows * drawn).sum(axis=0) / rows.sum()  # π_avg
    weight = np.where(mixture > 0, 1 / np.where(mixture > 0, mixture, 1.0), 0.0)
    tried = parts.visits > 0
    # What each row's weight is multiplied by, from 1/π of its own logger to that of the mixture.
    change = np.where(tried, drawn * weight, 0.0)
    visits = parts.visits.sum(axis=0)
    return LogStatistics(
        visits=visits,
        reward=(change * parts.reward).sum(axis=0),
        weight=visits * weight,
        reward_squared=(change**2 * parts.reward_squared).sum(axis=0),
        reward_weight=(change**2 * parts.reward_weight).sum(axis=0),
        weight_squared=visits * weight**2,
        largest_weight=np.where(visits > 0, weight, 0.0),
        lowest=np.where(tried, change * np.where(tried, parts.lowest, 0.0), np.inf).min(axis=0),
        highest=np.where(tried, change * np.where(tried, parts.highest, 0.0), -np.inf).max(axis=0),
        clipped=parts.clipped.sum(axis=0),
    )


def _checked(shares: NDArray[np.float64], logged: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares that are those of the rows where there are rows."""
    if shares.shape != logged.shape:
        raise ShapeError(
            f"`shares` should have a row for each log and a column for each task, {logged.shape}. "
            f"Found {shares.shape}."
        )
    wrong = (logged > 0) & ~np.isclose(shares, logged, rtol=1e-6, atol=0.0)
    if np.any(wrong):
        log, task = (int(place) for place in np.argwhere(wrong)[0])
        raise InputError(
            f"`shares` should be what the logs were drawn with. Found {shares[log, task]:.6g} for task "
            f"{task} of log {log}, whose rows have {logged[log, task]:.6g}."
        )
    return shares


def _shares(parts: LogStatistics) -> NDArray[np.float64]:
    """The probability [log, task] that each logger drew each task with."""
    tried = parts.visits > 0
    weight = np.where(tried, parts.weight / np.where(tried, parts.visits, 1), 1.0)
    squares = np.where(tried, parts.weight_squared / np.where(tried, parts.visits, 1), 1.0)
    changed = (squares > (1 + CHANGED_AT) * weight**2) | (parts.clipped > 0)
    if np.any(changed):
        log, task = (int(place) for place in np.argwhere(changed)[0])
        raise InputError(
            "Balanced logs should be of loggers that kept to their shares, with no weight clipped. "
            f"Found log {log}, which drew task {task} with changing or clipped probabilities. Add "
            "the sums of the logs instead."
        )
    return np.where(tried, 1 / weight, 0.0)
