"""The plan that lessons of transfer advise: the groups, or a target with the sources that help it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskmix.plans import Expected, Part, Plan, Shares

if TYPE_CHECKING:
    from taskmix.transfer._lessons import TargetLesson, TransferLessons


def plan_of_transfer(lessons: TransferLessons, evidence: Mapping[str, Any]) -> Plan:
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
