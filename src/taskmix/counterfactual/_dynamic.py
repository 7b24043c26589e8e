r"""Policies that change with the stage of training, learned from the same logs stage by stage.

    Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 5, leaves
    "extending our learned policies to be dynamic" for later work; Eq. 14 holds within each stage.

The log is cut into equal stages of the run, and in each the policy maximises Eq. 14 over the rows of
that stage, with the λ of the fixed policy. Its value is the mean over stages, and what it gains over
the fixed policy is measured on rows it was not learned from: both are learned from the even stages of
the log and compared on the odd ones, and the other way round, each stage of the policy being several
stages of the log. The number of stages is that of the largest lower bound of the gain; where no lower
bound is above zero the log cannot support more, and the fixed policy it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._estimators import Estimate, compare
from taskmix.counterfactual._improve import Improvement, checked_logs, improve_policy, joined
from taskmix.counterfactual._log import Log
from taskmix.counterfactual._maximise import maximise
from taskmix.counterfactual._statistics import LogStatistics, stack
from taskmix.errors import OptionError
from taskmix.policies import Scheduled

FEWEST_VISITS = 30  # of a task in half a stage, for its value there to be worth anything


@dataclass(frozen=True, slots=True)
class StagedImprovement:
    """Probabilities for each stage of a run; one stage where the logs support no more."""

    begins: NDArray[np.float64]  # [stage], as shares of the run, the first is 0
    probabilities: NDArray[np.float64]  # [stage, task]
    gain: Estimate | None  # over the fixed policy, on rows not learned from; None where not tried
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
    level: float = 0.95,
) -> StagedImprovement:
    """The staged policy of the largest assured gain among so many `stages`, or the fixed one."""
    if not stages or min(stages) < 2:
        raise OptionError(
            f"`stages` should be numbers of at least 2; 1 is the fixed policy. Found {list(stages)}."
        )
    given = checked_logs(logs)
    fixed = improve_policy(given, entropy=entropy, level=level)
    best: tuple[float, int, Estimate] | None = None
    supported = 0
    for count in sorted(set(stages)):
        folds = _folds(given, count)
        if folds is None:
            continue
        supported += 1
        gain = _crossed_gain(folds, fixed.entropy, level)
        if best is None or float(gain.low) > best[0]:
            best = (float(gain.low), count, gain)
    one = np.zeros(1), fixed.probabilities[None]
    if best is None:
        reason = (
            f"A task had fewer than {FEWEST_VISITS} visits in some half of a stage: the log is too "
            "short for stages, so the policy is the fixed one."
        )
        return StagedImprovement(*one, None, fixed, reason)
    low, count, gain = best
    if not low > 0:
        reason = (
            f"Stages gain {float(gain.value):.4g} with an interval down to {low:.4g}: the log cannot "
            "tell that they help, so the policy is the fixed one."
        )
        return StagedImprovement(*one, gain, fixed, reason)
    folds = _folds(given, count)
    assert folds is not None
    policies = maximise(folds[0] + folds[1], fixed.entropy).probabilities
    reason = f"{count} stages gain at least {low:.4g} over the fixed policy."
    return StagedImprovement(np.arange(count) / count, policies, gain, fixed, reason)


def _folds(logs: Sequence[Log], count: int) -> tuple[LogStatistics, LogStatistics] | None:
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


def _crossed_gain(
    folds: tuple[LogStatistics, LogStatistics], entropy: float, level: float
) -> Estimate:
    """What stages gain over the fixed policy, where judges did not teach."""
    gains, shares = [], []
    for teacher, judge in (folds, folds[::-1]):
        staged = maximise(teacher, entropy).probabilities
        fixed = maximise(teacher.pooled(), entropy).probabilities
        rows = judge.rows / judge.rows.sum()
        for stage, share in enumerate(rows.tolist()):
            gains.append(compare(judge[stage], staged[stage], fixed, level=level))
            shares.append(share / 2)
    return joined(gains, shares)
