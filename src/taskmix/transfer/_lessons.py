"""What a study of transfer taught about its targets, and the plan that follows from it.

The plan trains the groups, or a target with the sources that help it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix._html import html_lines, html_table
from taskmix.numerics import Interval
from taskmix.plans import Expected, Part, Plan, Shares
from taskmix.transfer._extrapolation import Extrapolation
from taskmix.transfer._grouping import Grouping
from taskmix.transfer._linear import LinearSurrogate
from taskmix.transfer._matrix import TransferMatrix
from taskmix.transfer._outcomes import SubsetOutcomes
from taskmix.transfer._selection import PrefixChoice, Selection
from taskmix.transfer._shrunken import PriorAgreement
from taskmix.transfer._trials import TrialOutcomes
from taskmix.transfer._verdicts import Verdict


@dataclass(frozen=True, kw_only=True)
class TargetLesson:
    """What was learned about one target."""

    target: str
    table: SubsetOutcomes  # what the surrogate was fitted to
    surrogate: LinearSurrogate
    verdicts: tuple[Verdict, ...]  # relative to the target alone
    relative: tuple[Verdict, ...]  # relative to the average source
    company: Interval | None  # of what any other task does to its loss, where that is not nothing
    selections: tuple[Selection, ...]  # one a rule
    prefixes: PrefixChoice | None
    measured: Interval | None  # the outcome with the sources of that rule, over its seeds
    test: Extrapolation | None  # None where too few held-out subsets finished
    held_out: NDArray[np.bool_]  # [held-out subset, source]

    @property
    def chosen(self) -> Selection:
        """The selection to act on: the measured one where there is one."""
        return self.selections[-1] if self.prefixes is None else self.prefixes.selection


@dataclass(frozen=True, kw_only=True)
class TransferLessons:
    """What was learned about all targets."""

    measured: TrialOutcomes
    targets: tuple[TargetLesson, ...]
    matrix: TransferMatrix | None  # where all tasks are targets
    grouping: Grouping | None
    prior: PriorAgreement | None = None  # how far a cheaper study agreed, where one was given

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The tasks to train together, by name."""
        if self.matrix is None or self.grouping is None:
            return ()
        return self.grouping.named(self.matrix.tasks)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each target and source, as `pandas.DataFrame(lessons.rows())` takes them.

        `effect` is on the target's loss, beside the target alone: below zero is help.
        """
        return [
            {
                "target": lesson.target,
                "source": verdict.source,
                "answer": verdict.answer,
                "effect": verdict.effect,
                "low": verdict.low,
                "high": verdict.high,
                "p_value": verdict.p_value,
                "chosen": verdict.source in lesson.chosen.sources,
            }
            for lesson in self.targets
            for verdict in lesson.verdicts
        ]

    def _repr_html_(self) -> str:
        """For notebooks: which tasks to train together, and what helps which."""
        groups = [f"Train together: {', '.join(group)}" for group in self.groups]
        return f"<div>{html_lines(groups) if groups else ''}{html_table(self.rows())}</div>"

    def plan(self, evidence: Mapping[str, Any] | None = None) -> Plan:
        """What follows from it: which tasks to train together, and for which of them."""
        return _plan(self, evidence or {})


def _plan(lessons: TransferLessons, evidence: Mapping[str, Any]) -> Plan:
    """A model for each group where there are groups, else one for each target and its sources."""
    tasks = lessons.measured.description.tasks
    if lessons.groups:
        models = [(group, group) for group in lessons.groups]
    else:
        models = [(_with_sources(lesson, tasks), (lesson.target,)) for lesson in lessons.targets]
    count = sum(len(members) for members, _ in models)
    return Plan(
        name="transfer",
        parts=tuple(
            Part(
                tasks=members,
                scored=scored,
                share=len(members) / count,
                division=Shares.equal(len(members)),
            )
            for members, scored in models
        ),
        expected=() if lessons.groups else tuple(_expected(lessons)),
        evidence=evidence,
    )


def _with_sources(lesson: TargetLesson, tasks: tuple[str, ...]) -> tuple[str, ...]:
    kept = {lesson.target, *lesson.chosen.sources}
    return tuple(name for name in tasks if name in kept)


def _expected(lessons: TransferLessons) -> list[Expected]:
    """What was measured with the sources that were chosen, where more than one seed was."""
    description = lessons.measured.description
    metrics = {task.name: task.metric for task in description.loaded}
    return [
        Expected(
            task=lesson.target,
            metric=metrics[lesson.target]
            if description.outcome == "metric"
            else description.outcome,
            value=lesson.measured.mean,
            low=lesson.measured.low,
            high=lesson.measured.high,
        )
        for lesson in lessons.targets
        if lesson.measured is not None and lesson.measured.n > 1
    ]
