r"""Policies that change with the stage of training, learned from the same logs stage by stage.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 5, leaves
    "extending our learned policies to be dynamic" for later work; Eq. 14 holds within each stage.

The log is cut into equal stages of the run, and in each the policy maximises Eq. 14 over the rows of
that stage, with one λ for all stages (`choose_entropy`), and is made into what the fixed policy is: the
mean of it and the shares by the curves, which have no stages. What it gains over the fixed policy is
measured on rows it was not learned from: both are learned from the even stages of the log and compared
on the odd ones, and the other way round, each stage of the policy being several stages of the log.

Stages are taken where the lower bound of that gain is above zero and, where the logs have losses, the
learning curves expect them to end no lower than the fixed policy; among such numbers of stages, the
one of the largest lower bound. Where there is none, the log cannot support more than the fixed policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._curves import LearningCurves
from taskmix.counterfactual._estimates import Range, ValueEstimate, compare
from taskmix.counterfactual._improve import (
    Improvement,
    checked_logs,
    chosen_entropy,
    crossed_end,
    curves_of,
    improve_policy,
    joined,
    reached,
    rewarded,
    steps_of,
)
from taskmix.counterfactual._log import Log
from taskmix.counterfactual._maximise import maximise
from taskmix.counterfactual._slopes import HalfCurves, HalfSums, half_curves
from taskmix.counterfactual._statistics import LogStatistics, stack
from taskmix.errors import OptionError
from taskmix.policies import Scheduled

FEWEST_VISITS = 30  # of a task in half a stage, for its value there to be worth anything


@dataclass(frozen=True, slots=True)
class StagedImprovement:
    """Probabilities for each stage of a run; one stage where the logs support no more."""

    begins: NDArray[np.float64]  # [stage], as shares of the run, the first is 0
    probabilities: NDArray[np.float64]  # [stage, task]
    # Over the fixed policy, in reward, on rows not learned from; None where not tried.
    gain: ValueEstimate | None
    # Over the logged shares, in performance at the end, by rows not learned from.
    gain_at_end: Range | None
    fixed: Improvement
    reason: str  # why so many stages

    def schedule(self, steps: int) -> Scheduled:
        """The policy for a run of so many `steps`."""
        starts = [round(begin * steps) for begin in self.begins.tolist()]
        return Scheduled(tuple(zip(starts, self.probabilities.tolist(), strict=True)))


def improve_stages(
    logs: Log | Sequence[Log],
    *,
    stages: Sequence[int] = (2, 4, 8),
    entropy: float | str = "auto",
    division: str | None = None,
    reward: str = "logged",
    budget: int | None = None,
    level: float = 0.95,
) -> StagedImprovement:
    """The staged policy of the largest assured gain among so many `stages`, or the fixed one.

    >>> generator = np.random.default_rng(0)
    >>> tasks = generator.integers(2, size=2000)
    >>> rewards = (tasks == (np.arange(2000) >= 1000)).astype(float)  # first a earns, then b
    >>> log = log_from_arrays(tasks, rewards, np.full(2000, 0.5), names=["a", "b"])
    >>> improve_stages(log, stages=[2], entropy=0.5).probabilities.round(2).tolist()
    [[0.89, 0.11], [0.12, 0.88]]
    """
    if not stages or min(stages) < 2:
        raise OptionError(
            f"`stages` should be numbers of at least 2; 1 is the fixed policy. Found {list(stages)}."
        )
    given = checked_logs(logs)
    fixed = improve_policy(
        given, entropy=entropy, division=division, reward=reward, budget=budget, level=level
    )
    curves, steps = curves_of(given), steps_of(given, budget)
    halves = half_curves(given, curves) if curves is not None else None
    given = rewarded(given, halves, reward, steps)
    tried = [
        _Candidate.learn(folds, fixed, curves, halves, steps, entropy)
        for count in sorted(set(stages))
        if (folds := _folds(given, count)) is not None
    ]
    kept = [one for one in tried if float(one.gain.low) > 0 and not one.ends < fixed.performance]
    if kept:
        best = max(kept, key=lambda one: float(one.gain.low))
        count = len(best.policies)
        reason = f"{count} stages earn more than the fixed policy, on rows that did not teach them."
        begins = np.arange(count) / count
        return StagedImprovement(begins, best.policies, best.gain, best.gain_at_end, fixed, reason)
    if not tried:
        gain, reason = (
            None,
            (
                f"A task had fewer than {FEWEST_VISITS} visits in some half of a stage: the log is too "
                "short for stages, so the policy is the fixed one."
            ),
        )
    else:
        gain = max((one.gain for one in tried), key=lambda one: float(one.low))
        reason = "Stages are not measurably better here, so the policy is the fixed one."
    return StagedImprovement(
        np.zeros(1), fixed.probabilities[None], gain, fixed.gain_at_end, fixed, reason
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A policy of so many stages."""

    policies: NDArray[np.float64]  # [stage, task]
    gain: ValueEstimate
    ends: float  # mean performance at the end by the curves; NaN without losses
    gain_at_end: Range | None  # over the logged shares, by curves of rows that did not teach

    @classmethod
    def learn(
        cls,
        folds: HalfSums,
        fixed: Improvement,
        curves: LearningCurves | None,
        halves: HalfCurves | None,
        budget: float,
        entropy: float | str,
    ) -> _Candidate:
        weight = chosen_entropy(folds, halves, budget, entropy)
        policies = fixed.mixed(maximise(folds[0] + folds[1], weight).probabilities)
        gain = _crossed_gain(folds, weight, fixed)
        visits = (folds[0] + folds[1]).pooled().visits
        even, odd = (
            fixed.mixed(maximise(fold, weight).probabilities).mean(axis=0) for fold in folds
        )
        gain_at_end = crossed_end(
            (even, odd), halves, visits / visits.sum(), budget=budget, level=fixed.value.level
        )
        return cls(policies, gain, reached(curves, policies.mean(axis=0), budget), gain_at_end)


def _folds(logs: Sequence[Log], count: int) -> HalfSums | None:
    """The even and the odd stages of the logs, [stage, task] each; None where there is too little."""
    folds: list[LogStatistics] = []
    for parity in (0, 1):
        parts: list[list[LogStatistics]] = [[] for _ in range(count)]
        for log in logs:
            fine = len(log.stages.visits)
            for place in range(parity, fine, 2):
                parts[min(int((place + 0.5) / fine * count), count - 1)].append(log.stages[place])
        if not all(parts):
            return None
        folds.append(stack([reduce(add, part) for part in parts]))
    if min(int(fold.visits.min()) for fold in folds) < FEWEST_VISITS:
        return None
    return folds[0], folds[1]


def _crossed_gain(folds: HalfSums, entropy: float, fixed: Improvement) -> ValueEstimate:
    """What stages gain over the fixed policy, where judges did not teach."""
    gains, shares = [], []
    for teacher, judge in (folds, folds[::-1]):
        staged = fixed.mixed(maximise(teacher, entropy).probabilities)
        one = fixed.mixed(maximise(teacher.pooled(), fixed.entropy).probabilities)
        rows = judge.rows / judge.rows.sum()
        for stage, share in enumerate(rows.tolist()):
            gains.append(compare(judge[stage], staged[stage], one, level=fixed.value.level))
            shares.append(share / 2)
    return joined(gains, shares)
