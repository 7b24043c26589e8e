"""The lesson of the logs: how another division of the budget would have done, and the plan of the best.

Glover and Hokamp, "Task Selection Policies for Multitask Learning", 2019, Section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.counterfactual._curves import LearningCurves
from taskmix.counterfactual._dynamic import StagedImprovement, improve_stages
from taskmix.counterfactual._estimates import Range, compare, estimate
from taskmix.counterfactual._improve import curves_of, improve_policy, steps_of
from taskmix.counterfactual._log import Log, log_of_runs
from taskmix.counterfactual._recorded import RecordedRun, recorded_runs, rises_of_scores
from taskmix.plans import Division, Part, Plan, Shares, Stage, Stages
from taskmix.records import Study
from taskmix.tasks import METRICS

SMALLEST_GAIN = 5e-5  # of a mean exp(-loss) from 0 to 1: less is shown as 0.0000


@dataclass(frozen=True, kw_only=True)
class PolicyValue:
    """What a policy would have earned a step, by the logs."""

    policy: str
    value: float
    low: float
    high: float
    effective_rows: float  # rows drawn by the policy itself that would tell as much
    largest_weight: float
    gain: Range | None  # over the shares that were logged
    ends_at: float | None  # the mean of exp(-loss) at the end, by the learning curves
    ends_above: Range | None  # that of the shares that were logged


@dataclass(frozen=True, kw_only=True)
class PolicyLessons:
    """What was learned from the logs of runs. Train by `plan()` where `has_gain`.

    >>> from types import SimpleNamespace
    >>> tasks = np.arange(400) % 2  # task b always earns 1, task a nothing
    >>> log = log_from_arrays(tasks, tasks.astype(float), np.full(400, 0.5), names=["a", "b"])
    >>> run = SimpleNamespace(summary=SimpleNamespace(name="first", step=400, specification={}))
    >>> found = improve_stages(log, entropy=0.5)
    >>> lessons = PolicyLessons(runs=(run,), improvement=found, policies=(), notes=())
    >>> [round(share, 2) for share in lessons.plan().probabilities]
    [0.12, 0.88]
    """

    runs: tuple[RecordedRun, ...]
    improvement: StagedImprovement
    policies: tuple[PolicyValue, ...]
    notes: tuple[str, ...]  # what is doubtful of the plan
    left_out: tuple[str, ...] = ()  # runs that taught nothing, and why, a sentence each

    @property
    def steps(self) -> int:
        """That were logged, of all runs."""
        return sum(run.summary.step for run in self.runs)

    @property
    def gain(self) -> Range | None:
        """What the plan gains at the end over the logged shares, by rows that did not teach it."""
        return self.improvement.gain_at_end

    @property
    def has_gain(self) -> bool:
        """Whether that gain is more than chance; a log that cannot tell has none."""
        return self.gain is not None and self.gain.low > SMALLEST_GAIN

    def evidence(self) -> dict[str, Any]:
        """What the plan rests on, as plain values."""
        return {
            "runs": [run.summary.name for run in self.runs],
            "reward": self.runs[0].summary.specification.get("reward"),
            "rewarded_by": self.improvement.fixed.reward,
            "division": self.improvement.fixed.division,
            "entropy": self.improvement.fixed.entropy,
            "policies": [asdict(row) for row in self.policies],
            "gain": _plain(self.gain),
            "stages": self.improvement.reason,
            "gain_of_stages": _plain(Range.of(self.improvement.gain)),
            "notes": [*self.left_out, *self.notes],
        }

    def plan(self, *, command: str = "") -> Plan:
        """One model, the tasks drawn as was learned; `command` is how it came about, for people."""
        found = self.improvement
        tasks = found.fixed.tasks
        division: Division = Shares(probabilities=tuple(found.fixed.probabilities.tolist()))
        if len(found.begins) > 1:
            pairs = zip(found.begins.tolist(), found.probabilities.tolist(), strict=True)
            stages = tuple(Stage(begin=begin, probabilities=tuple(row)) for begin, row in pairs)
            division = Stages(stages=stages)
        part = Part(tasks=tasks, scored=tasks, share=1.0, division=division)
        words = "shares learned from the logs of earlier runs"
        evidence = {"command": command, **self.evidence()} if command else self.evidence()
        return Plan(name="learned", words=words, parts=(part,), evidence=evidence)


def learn(
    studies: Study | Path | str | Sequence[Study | Path | str],
    *,
    labels: Sequence[str] | None = None,  # of the runs to learn from
    entropy: float | str = "auto",
    division: str | None = None,  # "both", "entropy" or "curves", as in `improve_policy`
    reward: str = "logged",  # or "slope": what a visit still adds by the learning curves
    budget: int | None = None,  # steps of the run to plan
    stages: bool = True,  # let the plan change over the run
) -> PolicyLessons:
    """Learns from the logs of earlier runs how to divide the next run's budget.

    >>> learn("nowhere")
    Traceback (most recent call last):
        ...
    taskmix.errors.InputError: `nowhere` should be a study, a folder with runs in ...
    """
    given = [studies] if isinstance(studies, Study | Path | str) else list(studies)
    opened = [each if isinstance(each, Study) else Study(each) for each in given]
    runs, notes = recorded_runs(opened, labels)
    logs = log_of_runs([run.folder for run in runs])
    if stages:
        found = improve_stages(
            logs, entropy=entropy, division=division, reward=reward, budget=budget
        )
    else:
        fixed = improve_policy(
            logs, entropy=entropy, division=division, reward=reward, budget=budget
        )
        reason = "A policy that stays the same over the run was asked for."
        found = StagedImprovement(
            np.zeros(1), fixed.probabilities[None], None, fixed.gain_at_end, fixed, reason
        )
    return PolicyLessons(
        runs=runs,
        improvement=found,
        policies=_policies(logs, runs, found, budget),
        notes=(*found.fixed.notes, *_fruitless(runs, found)),
        left_out=tuple(notes),
    )


def _policies(
    logs: tuple[Log, ...],
    runs: Sequence[RecordedRun],
    found: StagedImprovement,
    budget: int | None,
) -> tuple[PolicyValue, ...]:
    """Policies with their values, each compared with the shares the logs were drawn with."""
    total = reduce(add, (log.total for log in logs))
    logged = total.visits / total.visits.sum()
    count = len(logged)
    sizes = [task.get("sizes", {}).get("train", 0) for task in runs[0].summary.tasks]
    policies: dict[str, NDArray[np.float64]] = {"uniform": np.full(count, 1 / count)}
    if min(sizes) > 0:
        policies["proportional"] = np.array(sizes) / sum(sizes)
        policies["tempered:2"] = np.sqrt(sizes) / np.sqrt(sizes).sum()
    policies = {"as logged": logged, **policies, "learned": found.fixed.probabilities}
    steps, curves = steps_of(logs, budget), curves_of(logs)
    rows = []
    for name, shares in policies.items():
        value = estimate(total, shares)
        # Of the learned one by rows it was not learned from: the gain is no illusion of the choice.
        learned = name == "learned"
        gain = found.fixed.gain if learned else compare(total, shares, logged)
        above = None if curves is None else _above(curves, shares, logged, steps)
        rows.append(
            PolicyValue(
                policy=name,
                value=float(value.value),
                low=float(value.low),
                high=float(value.high),
                effective_rows=float(value.effective_rows),
                largest_weight=float(value.largest_weight),
                gain=Range.of(gain),
                ends_at=None if curves is None else float(curves.at(steps * shares).mean()),
                ends_above=found.fixed.gain_at_end if learned else above,
            )
        )
    return tuple(rows)


def _above(
    curves: LearningCurves, shares: NDArray[np.float64], logged: NDArray[np.float64], steps: float
) -> Range:
    """How much higher a division ends than the logged one, with a 95 % interval."""
    visits, others = steps * shares, steps * logged
    value = float((curves.at(visits) - curves.at(others)).mean())
    return Range.about(value, float(curves.difference_error(visits, others)))


def _fruitless(runs: Sequence[RecordedRun], found: StagedImprovement) -> list[str]:
    """A sentence for each task that gets more than its share although its dev score did not rise."""
    lower = [name for name, metric in METRICS.items() if not metric.higher_is_better]
    rises = rises_of_scores([run.folder for run in runs], better_lower=lower)
    notes = []
    for name, share in zip(found.fixed.tasks, found.probabilities.mean(axis=0), strict=True):
        rise = rises.get(name)
        if rise is None or share <= 1 / len(found.fixed.tasks):
            continue
        if (rise.low if rise.n > 1 else rise.mean) <= 0:
            notes.append(
                f"`{name}` gets {share:.0%} of the plan, yet its dev score cannot be seen to rise in "
                f"the logged runs ({rise.mean:+.3f}): the reward looks at training rows, where labels "
                "that mean nothing look like a hard task. Leave the task out, or train with the "
                "reward `score`."
            )
    return notes


def _plain(found: Range | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)
