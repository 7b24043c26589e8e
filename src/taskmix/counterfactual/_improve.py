r"""A better policy from logs, with the weight of its entropy chosen from the same logs.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 3.3.2.

**How λ is chosen.** The paper trains a model for each λ of a grid and keeps the best. Its λ is not
there for noise: with ten thousand rows the values of the tasks are known well, and a bound on their
error would choose a λ near zero, which on the paper's own bandit does worse than drawing uniformly.
It is there because the reward is a stand-in, and because a task that is visited more is sooner
learned, so its reward falls; neither shows in the value of Eq. 11. Both show in the losses of the same
log (`LearningCurves`), which say what each division of the budget reaches at the end of training:

    λ is the largest one whose policy reaches, by the learning curves of the log, no less than the
    best λ's does, up to one standard error of the difference.

No further run is needed, λ scales with the reward, and a log that cannot tell keeps to the uniform
policy, which is that of the largest λ. Several logs are pooled, in Eq. 11 and in the curves: a policy
learned from the second of two logs alone swings to the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._curves import LearningCurves, learning_curves
from taskmix.counterfactual._estimates import ValueEstimate, compare, estimate
from taskmix.counterfactual._faults import check_log
from taskmix.counterfactual._log import Log
from taskmix.counterfactual._maximise import maximise
from taskmix.counterfactual._statistics import LogStatistics
from taskmix.errors import InputError, OptionError
from taskmix.numerics import normal_quantile

# λ in ranges of the tasks' mean rewards: from nearly the best task alone to nearly uniform.
ENTROPY_GRID = np.geomspace(0.05, 20.0, 97)
FEW_EFFECTIVE_ROWS = 50.0  # below them a standard error is itself off by a tenth and more


@dataclass(frozen=True, slots=True)
class Improvement:
    """A policy learned from logs, and what is known about it."""

    tasks: tuple[str, ...]
    probabilities: NDArray[np.float64]  # [task]
    entropy: float  # λ, given or chosen
    value: ValueEstimate  # of the policy
    before: ValueEstimate  # of the shares the logs were drawn with
    gain: ValueEstimate  # learned on one half of the rows, compared with `before` on the other
    performance: float  # mean exp(−loss) at the end, by the learning curves; NaN without losses
    performance_before: float
    notes: tuple[str, ...]  # what is doubtful, in words


def improve_policy(
    logs: Log | Sequence[Log],
    *,
    entropy: float | str = "auto",
    budget: int | None = None,
    level: float = 0.95,
) -> Improvement:
    """The policy that maximises Eq. 14 over all `logs` together.

    `entropy` is λ, or "auto" for the rule above, which needs losses in the logs. `budget` is the
    number of steps the policy is for; without it, as many as the logs have on average.

    >>> generator = np.random.default_rng(0)
    >>> tasks = generator.integers(2, size=400)
    >>> log = log_from_arrays(tasks, tasks.astype(float), np.full(400, 0.5), names=["a", "b"])
    >>> found = improve_policy(log, entropy=0.5)  # task b earns 1, task a nothing
    >>> found.probabilities.round(2).tolist()
    [0.15, 0.85]
    >>> found.gain.low.item() > 0
    True
    """
    given = checked_logs(logs)
    total = reduce(add, (log.total for log in given))
    notes = list(check_log(total, given[0].tasks))
    curves, steps = curves_of(given), steps_of(given, budget)
    weight = chosen_entropy(total, curves, steps, entropy)
    policy = maximise(total, weight).probabilities
    before = total.visits / total.visits.sum()
    value = estimate(total, policy, level=level)
    if value.effective_rows < FEW_EFFECTIVE_ROWS:
        notes.append(
            f"The policy's value rests on {float(value.effective_rows):.0f} effective rows only: log "
            "a run of a policy nearer to it."
        )
    ends, ended = reached(curves, policy, steps), reached(curves, before, steps)
    if ends < ended:
        notes.append(
            f"By the learning curves the policy would end lower, at {ends:.4f}, than the logs' own "
            f"shares at {ended:.4f}: keep those, or give the entropy more weight."
        )
    return Improvement(
        tasks=given[0].tasks,
        probabilities=policy,
        entropy=weight,
        value=value,
        before=estimate(total, before, level=level),
        gain=_crossed_gain(given, weight, before, level),
        performance=ends,
        performance_before=ended,
        notes=tuple(notes),
    )


def choose_entropy(
    statistics: LogStatistics,  # [task] or [stage, task], of all logs
    curves: LearningCurves,
    *,
    budget: float,
) -> float:
    """λ by the rule above; with stages, one λ for all of them, and visits are summed over them."""
    spread = float(np.ptp(statistics.means, axis=-1).max())
    if spread == 0:
        return 1.0  # every λ gives the uniform policy
    weights = spread * ENTROPY_GRID
    staged = statistics if statistics.visits.ndim > 1 else statistics[None]
    policies = maximise(staged, weights[:, None]).probabilities  # [λ, stage, task]
    visits = budget * policies.mean(axis=1)
    ends = curves.at(visits).mean(axis=-1)
    best = int(ends.argmax())
    tied = ends[best] - ends <= curves.difference_error(visits, visits[best])
    return float(weights[np.flatnonzero(tied).max()])


def chosen_entropy(
    statistics: LogStatistics, curves: LearningCurves | None, budget: float, entropy: float | str
) -> float:
    """λ as a number, whichever way it was asked for."""
    if not isinstance(entropy, str):
        return float(entropy)
    if entropy != "auto":
        raise OptionError(f'`entropy` should be a number or "auto". Found {entropy!r}.')
    if curves is None:
        raise OptionError(
            'With `entropy="auto"` the logs should have the loss of every row. Found a log without. '
            "Give the weight of the entropy as a number, such as a third of the range of the rewards."
        )
    return choose_entropy(statistics, curves, budget=budget)


def checked_logs(logs: Log | Sequence[Log]) -> tuple[Log, ...]:
    """At least one log, all of the same tasks."""
    given = (logs,) if isinstance(logs, Log) else tuple(logs)
    if not given:
        raise InputError("A policy should be learned from at least one log. Found none.")
    for log in given[1:]:
        if log.tasks != given[0].tasks:
            raise InputError(
                "Logs that are pooled should be of the same tasks in the same order. Found "
                f"{', '.join(given[0].tasks)} and {', '.join(log.tasks)}."
            )
    return given


def curves_of(logs: Sequence[Log]) -> LearningCurves | None:
    """The learning curves, where every log has losses."""
    return learning_curves(logs) if all(log.performance is not None for log in logs) else None


def steps_of(logs: Sequence[Log], budget: int | None) -> float:
    return float(np.mean([log.rows for log in logs])) if budget is None else float(budget)


def halves(log: Log) -> tuple[LogStatistics, LogStatistics]:
    """The even and the odd stages, [stage, task] each: both are of the whole run."""
    return log.stages[0::2], log.stages[1::2]


def joined(estimates: Sequence[ValueEstimate], shares: Sequence[float]) -> ValueEstimate:
    """A weighted sum of estimates from different rows."""
    level = estimates[0].level
    value = np.asarray(sum(s * e.value for s, e in zip(shares, estimates, strict=True)))
    variance = sum((s * e.standard_error) ** 2 for s, e in zip(shares, estimates, strict=True))
    error = np.sqrt(np.asarray(variance))
    half = normal_quantile(level) * error
    return ValueEstimate(
        value=value,
        standard_error=error,
        low=value - half,
        high=value + half,
        effective_rows=np.asarray(sum(e.effective_rows for e in estimates)),
        largest_weight=np.max([e.largest_weight for e in estimates], axis=0),
        weight_mean=np.asarray(
            sum(s * e.weight_mean for s, e in zip(shares, estimates, strict=True))
        ),
        level=level,
    )


def reached(curves: LearningCurves | None, policy: NDArray[np.float64], budget: float) -> float:
    return float(curves.at(budget * policy).mean()) if curves is not None else float("nan")


def _crossed_gain(
    logs: Sequence[Log], entropy: float, before: NDArray[np.float64], level: float
) -> ValueEstimate:
    """What learning gains, where the rows that judge are not the rows that taught."""
    even = reduce(add, (halves(log)[0].pooled() for log in logs))
    odd = reduce(add, (halves(log)[1].pooled() for log in logs))
    if np.any(even.visits == 0) or np.any(odd.visits == 0):
        none = np.asarray(np.nan)
        return ValueEstimate(none, none, none, none, none, none, none, level)
    parts = [
        compare(judge, maximise(teacher, entropy).probabilities, before, level=level)
        for teacher, judge in ((even, odd), (odd, even))
    ]
    return joined(parts, [0.5, 0.5])
