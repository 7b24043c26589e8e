r"""A better policy from logs, chosen by what the learning curves of the same logs reach.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 3.3.2.

**How λ is chosen.** The paper trains a model for each λ of a grid and keeps the best. Its λ is not
there for noise: with ten thousand rows the values of the tasks are known well, and a bound on their
error would choose a λ near zero, which on the paper's own bandit does worse than drawing uniformly.
It is there because the reward is a stand-in, and because a task that is visited more is sooner
learned, so its reward falls; neither shows in the value of Eq. 11. Both show in the losses of the same
log (`LearningCurves`), which say what each division of the budget reaches at the end of training:

    λ is the largest one whose policy, learned from one half of the rows, reaches by the learning
    curves of the other half no less than the best λ's does, up to one standard error of the difference.

No further run is needed, λ scales with the reward, and a log that cannot tell keeps to the uniform
policy, which is that of the largest λ. Several logs are pooled, in Eq. 11 and in the curves: a policy
learned from the second of two logs alone swings to the other side.

**What the policy is** (`division`). "entropy" is the policy of Eq. 14 with that λ. "curves" are the
shares that maximise the curves themselves (`_shares`), moved back towards uniform ones as far as the
curves of the other half gain by it, and all the way where they gain no standard error. "both", the
default, is the mean of the two: a hard task and one that still learns are not the same, and either
division alone is misled where its own model of training is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._curves import LearningCurves, learning_curves
from taskmix.counterfactual._estimates import Range, ValueEstimate, compare, estimate
from taskmix.counterfactual._faults import check_log
from taskmix.counterfactual._log import Log
from taskmix.counterfactual._maximise import maximise
from taskmix.counterfactual._slopes import (
    HalfCurves,
    HalfSums,
    curve_shares,
    farthest,
    half_curves,
    half_sums,
    with_slope_rewards,
)
from taskmix.errors import InputError, OptionError
from taskmix.numerics import normal_quantile

# λ in ranges of the tasks' mean rewards: from nearly the best task alone to nearly uniform, and the
# last one uniform but for a ten-thousandth.
ENTROPY_GRID = np.append(np.geomspace(0.05, 20.0, 97), 1e4)
WAY_GRID = np.linspace(1.0, 0.0, 21)  # from the shares of the curves to uniform ones
FEW_EFFECTIVE_ROWS = 50.0  # below them a standard error is itself off by a tenth and more
DIVISIONS = ("both", "entropy", "curves")
REWARDS = ("logged", "slope")


@dataclass(frozen=True, slots=True)
class Improvement:
    """A policy learned from logs, and what is known about it.

    >>> tasks = np.arange(400) % 2
    >>> log = log_from_arrays(tasks, tasks.astype(float), np.full(400, 0.5), names=["a", "b"])
    >>> found = improve_policy(log, entropy=0.5)
    >>> found.division, found.tasks[int(found.probabilities.argmax())]
    ('entropy', 'b')
    """

    tasks: tuple[str, ...]
    probabilities: NDArray[np.float64]  # [task]
    division: str  # "both", "entropy" or "curves": what the policy is made of
    reward: str  # "logged" or "slope": what Eq. 14 was given
    entropy: float  # λ, given or chosen
    by_curves: NDArray[np.float64] | None  # [task], the shares by the curves; None: not asked for
    value: ValueEstimate  # of the policy
    before: ValueEstimate  # of the shares the logs were drawn with
    gain: ValueEstimate  # learned on one half of the rows, compared with `before` on the other
    performance: float  # mean exp(−loss) at the end, by the learning curves; NaN without losses
    performance_before: float
    performance_error: float  # the standard error of their difference, transfer not counted
    gain_at_end: (
        Range | None
    )  # of performance, by curves of rows that did not teach; None: no curves
    notes: tuple[str, ...]  # what is doubtful, in words

    def mixed(self, policies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Policies of Eq. 14 [..., task] made into ones of this division."""
        return mixed(self.division, policies, self.by_curves)


def improve_policy(
    logs: Log | Sequence[Log],
    *,
    entropy: float | str = "auto",
    division: str | None = None,
    reward: str = "logged",
    budget: int | None = None,
    level: float = 0.95,
) -> Improvement:
    """The better policy over all `logs` together.

    `entropy` is λ of Eq. 14, or "auto" for the rule above, which needs losses in the logs. `division`
    is "both", "entropy" or "curves"; without it "both", or "entropy" where λ is a number. `reward` is
    what Eq. 14 goes by: "logged", or "slope" for what a visit still adds by the learning curves.
    `budget` is the number of steps the policy is for; without it, as many as the logs have on average.

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
    kind = checked_division(division, entropy)
    notes = list(check_log(reduce(add, (log.total for log in given)), given[0].tasks))
    curves, steps = curves_of(given), steps_of(given, budget)
    halves = half_curves(given, curves) if curves is not None else None
    given = rewarded(given, halves, reward, steps)
    total, sums = reduce(add, (log.total for log in given)), half_sums(given)
    weight = chosen_entropy(sums, halves, steps, entropy)
    by_curves = kept = None
    if kind != "entropy":
        by_curves, kept = shares_by_curves(curves, halves, steps)
    policy = mixed(kind, maximise(total, weight).probabilities, by_curves)
    taught = _taught_by_halves(sums, weight, kept, kind)
    before = total.visits / total.visits.sum()
    value = estimate(total, policy, level=level)
    if value.effective_rows < FEW_EFFECTIVE_ROWS:
        notes.append(
            f"The policy's value rests on {float(value.effective_rows):.0f} effective rows only: log "
            "a run of a policy nearer to it."
        )
    ends, ended = reached(curves, policy, steps), reached(curves, before, steps)
    error = (
        float(curves.difference_error(steps * policy, steps * before))
        if curves is not None
        else float("nan")
    )
    if ends < ended - error:
        notes.append(
            f"By the learning curves the policy would end lower, at {ends:.4f}, than the logs' own "
            f"shares at {ended:.4f}: keep those, or give the entropy more weight."
        )
    return Improvement(
        tasks=given[0].tasks,
        probabilities=policy,
        division=kind,
        reward=reward,
        entropy=weight,
        by_curves=by_curves,
        value=value,
        before=estimate(total, before, level=level),
        gain=_crossed_gain(sums, taught, before, level),
        gain_at_end=crossed_end(taught, halves, before, budget=steps, level=level),
        performance=ends,
        performance_before=ended,
        performance_error=error,
        notes=tuple(notes),
    )


def choose_entropy(
    sums: HalfSums,  # [task] or [stage, task], of all logs
    curves: HalfCurves,
    *,
    budget: float,
) -> float:
    """λ by the rule above; with stages, one λ for all of them, and visits are summed over them."""
    whole = sums[0] + sums[1]
    spread = float(np.ptp(whole.means, axis=-1).max())
    if spread == 0:
        return 1.0  # every λ gives the uniform policy
    weights = spread * ENTROPY_GRID
    # A half that never tried a task has nothing to teach; the whole does then.
    taught = sums if all(np.all(half.visits > 0) for half in sums) else (whole, whole)
    even, odd = (
        maximise(half if half.visits.ndim > 1 else half[None], weights[:, None]).probabilities.mean(
            axis=1
        )  # [λ, stage, task], over the stages
        for half in taught
    )
    return float(weights[farthest((even, odd), curves, budget=budget, errors=1.0)])


def chosen_entropy(
    sums: HalfSums, curves: HalfCurves | None, budget: float, entropy: float | str
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
    return choose_entropy(sums, curves, budget=budget)


def shares_by_curves(
    curves: LearningCurves | None, halves: HalfCurves | None, budget: float
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The shares that maximise the curves, as far from uniform ones as the other half agrees.

    Those of all rows, and those of each half moved as far.
    """
    if curves is None or halves is None:
        raise OptionError(
            "A division by learning curves should have the loss of every row. Found a log without. "
            'Log the losses, or use `division="entropy"`.'
        )
    count = len(curves.noise)
    whole, even, odd = (
        curve_shares(one.at, budget=budget, task_count=count) for one in (curves, *halves)
    )
    ways = WAY_GRID[:, None]
    tried = (1 / count + ways * (even - 1 / count), 1 / count + ways * (odd - 1 / count))
    last = len(WAY_GRID) - 1  # uniform shares, which are kept if nothing is better by one error
    kept = farthest(tried, halves, budget=budget, errors=1.0) == last
    place = last if kept else farthest(tried, halves, budget=budget, errors=0.0)
    return 1 / count + WAY_GRID[place] * (whole - 1 / count), (tried[0][place], tried[1][place])


def mixed(
    division: str,
    policies: NDArray[np.float64],  # [..., task], of Eq. 14
    by_curves: NDArray[np.float64] | None,  # [task]
) -> NDArray[np.float64]:
    """The policies that a division makes of both."""
    if by_curves is None:
        return policies
    return (
        by_curves + np.zeros_like(policies) if division == "curves" else (policies + by_curves) / 2
    )


def checked_division(division: str | None, entropy: float | str) -> str:
    """What the policy is made of; a λ that was given is that of the paper's own policy."""
    if division is None:
        return "both" if isinstance(entropy, str) else "entropy"
    if division not in DIVISIONS:
        raise OptionError(f"`division` should be among {', '.join(DIVISIONS)}. Found {division!r}.")
    return division


def rewarded(
    logs: tuple[Log, ...], curves: HalfCurves | None, reward: str, budget: float
) -> tuple[Log, ...]:
    """The logs with the rewards that were asked for."""
    if reward not in REWARDS:
        raise OptionError(f"`reward` should be among {', '.join(REWARDS)}. Found {reward!r}.")
    if reward == "logged":
        return logs
    if curves is None:
        raise OptionError(
            'With `reward="slope"` the logs should have the loss of every row. Found a log without. '
            'Log the losses, or use `reward="logged"`.'
        )
    return with_slope_rewards(logs, curves, budget=budget)


def checked_logs(logs: Log | Sequence[Log]) -> tuple[Log, ...]:
    """At least one log, all of the same tasks."""
    given = (logs,) if isinstance(logs, Log) else tuple(logs)
    if not given:
        raise InputError("A policy should be learned from at least one log. Found none.")
    if min(len(log.stages.visits) for log in given) < 2:
        raise InputError(
            "A log should have at least two stages: what one half teaches is judged by the other. Found "
            "a log with one. Read it with more `stages`, or log more steps."
        )
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


Taught = tuple[NDArray[np.float64], NDArray[np.float64]]  # the policies [..., task] of both halves


def _taught_by_halves(
    sums: HalfSums,
    entropy: float,
    by_curves: Taught | None,  # of each half
    division: str,
) -> Taught | None:
    """The policy as each half of the rows alone teaches it; None where a half never tried a task."""
    if any(np.any(half.visits == 0) for half in sums):
        return None
    even, odd = (
        mixed(
            division,
            maximise(half, entropy).probabilities,
            None if by_curves is None else by_curves[fold],
        )
        for fold, half in enumerate(sums)
    )
    return even, odd


def _crossed_gain(
    sums: HalfSums, taught: Taught | None, before: NDArray[np.float64], level: float
) -> ValueEstimate:
    """What learning gains in reward, where the rows that judge are not the rows that taught."""
    if taught is None:
        none = np.asarray(np.nan)
        return ValueEstimate(none, none, none, none, none, none, none, level)
    judges = sums[::-1]
    parts = [
        compare(judge, policy, before, level=level)
        for judge, policy in zip(judges, taught, strict=True)
    ]
    return joined(parts, [0.5, 0.5])


def crossed_end(
    taught: Taught | None,
    curves: HalfCurves | None,
    before: NDArray[np.float64],  # [task]
    *,
    budget: float,
    level: float,
) -> Range | None:
    """How much higher than the logged shares the policies end, by the curves of the other half."""
    if taught is None or curves is None or curves[0] is curves[1]:
        return None
    pairs = list(zip(curves[::-1], taught, strict=True))
    gains = [(judge.at(budget * p) - judge.at(budget * before)).mean() for judge, p in pairs]
    errors = [judge.difference_error(budget * p, budget * before) for judge, p in pairs]
    return Range.about(
        float(np.mean(gains)), float(np.linalg.norm(errors)) / len(errors), level=level
    )
