"""The runs that carry out a plan: one model for each of its groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import taskmix.weighting as weightings
from taskmix.engine._described import undescribe
from taskmix.engine._run import Run
from taskmix.errors import InputError
from taskmix.policies import AnyPolicy, Fixed, Scheduled
from taskmix.records import Plan
from taskmix.weighting import AnyWeighting


def planned_runs(plan: Plan, template: Run, batches: int) -> list[Run]:
    """The runs of a plan that spend so many batches in all.

    Every group gets the share of the batches that its tasks have together, and within it tasks are
    drawn by their probabilities; a plan without groups is one of all tasks. With a weighting a step
    takes a batch of every task of the group, one for those that share their inputs.
    """
    known = template.load().names
    missing = [name for name in plan.tasks if name not in known]
    if missing:
        raise InputError(
            f"The plan should be for tasks at hand. Found `{missing[0]}` only in the plan, and the "
            f"tasks {', '.join(known[:10])}{' ...' if len(known) > 10 else ''}. Check the folder."
        )
    # Within a group the order is that of the folder, so that the same plan is always the same run.
    groups = [
        tuple(name for name in known if name in group) for group in plan.groups or (plan.tasks,)
    ]
    shares = dict(zip(plan.tasks, plan.probabilities, strict=True))
    weights = [sum(shares[name] for name in group) for group in groups]
    runs = []
    for group, weight in zip(groups, weights, strict=True):
        share = weight / sum(weights)
        weighting = described_weighting(plan.weighting) if plan.weighting is not None else None
        if len(group) == 1:
            weighting = None
        steps = max(round(batches * share), 1)
        run = replace(template, tasks=tuple(group), policy=None, weighting=weighting)
        steps = max(steps // run.batches_a_step, 1)
        runs.append(
            replace(
                run,
                policy=_policy(plan, group, steps) if weighting is None else None,
                reward=template.reward if weighting is None else None,
                steps=steps,
                evaluate_every=_fewer(template.evaluate_every, steps, batches),
                checkpoint_every=_fewer(template.checkpoint_every, steps, batches),
            )
        )
    return runs


def _fewer(every: int | None, steps: int, batches: int) -> int | None:
    """The same number of times in a shorter run."""
    return None if every is None else max(every * steps // batches, 1)


def _policy(plan: Plan, group: tuple[str, ...], steps: int) -> AnyPolicy:
    places = [plan.tasks.index(name) for name in group]

    def within(probabilities: tuple[float, ...]) -> list[float]:
        chosen = [probabilities[place] for place in places]
        total = sum(chosen)
        if min(chosen) <= 0:
            name = group[chosen.index(min(chosen))]
            raise InputError(
                f"A task that is trained on should have a probability above 0. Found 0 for `{name}`. "
                "Leave it out of the plan's groups."
            )
        return [share / total for share in chosen]

    if not plan.stages:
        return Fixed(within(plan.probabilities))
    return Scheduled(
        tuple((round(stage.begin * steps), within(stage.probabilities)) for stage in plan.stages)
    )


def described_weighting(description: Mapping[str, Any]) -> AnyWeighting:
    """The method that `records.describe` described; only methods of `taskmix.weighting` are made."""
    try:
        found = undescribe(description, weightings)
    except InputError as error:
        raise InputError(
            "A plan's weighting should be a method of taskmix under `kind`, with options that it "
            f"takes. Found {dict(description)} ({error})"
        ) from error
    if not hasattr(found, "needs"):
        raise InputError(
            "A plan's weighting should be a method of taskmix under `kind`, with its options. Found "
            f"{dict(description)}."
        )
    return cast("AnyWeighting", found)
