"""A member's checkpoint as the tree of a solo run's, so that either engine goes on from the other's."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from taskmix.engine._fleet._layout import ParameterLayout, StackedParameters
from taskmix.engine._fleet._members import Member
from taskmix.engine._optimization import Optimization


def model_tree(layout: ParameterLayout, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """A solo model's `state_dict`, in its order."""
    return {name: values[name] if name in values else layout.fixed[name] for name in layout.names}


def best_tree(
    member: Member,
    place: int,  # among the members of the stacks
    best: StackedParameters,  # on the CPU, as are the others
    own: Sequence[StackedParameters],  # of each slot's task, where that is kept
) -> dict[str, Any]:
    """What `train` yields as the best of a checkpoint."""
    layout, watches = member.layout, member.watches
    stacks = {watches.mean.step: best}
    if own:
        stacks |= {
            watches.step_for(name): own[slot]
            for slot, name in enumerate(member.tasks.names)
            if watches.own[name].step
        }
    return watches.tree(
        {step: model_tree(layout, stack.of_member(place, layout)) for step, stack in stacks.items()}
    )


def state_tree(
    member: Member,
    place: int,  # among the members of the stacks
    step: int,
    parameters: StackedParameters,  # on the CPU, as are the others
    moments: dict[str, StackedParameters],
    head_steps: Tensor | None,  # [member, slot]
) -> dict[str, Any]:
    """What `train` yields as the state of a checkpoint."""
    layout = member.layout
    optimizer, scheduler = _optimizer_tree(
        member.run.optimization, len(layout.places), step, member
    )
    found = {name: stack.of_member(place, layout) for name, stack in moments.items()}
    for number, each in enumerate(layout.places):
        count = float(step)
        if head_steps is not None and each.slot is not None:
            count = float(head_steps[place, each.slot])
        if count:  # a head that was never drawn has no state
            kept = {name: values[each.name] for name, values in found.items()}
            if "exp_avg" in kept:
                kept = {"step": torch.tensor(count), **kept}
            optimizer["state"][number] = kept
    return {
        "step": step,
        "seed": member.seed,
        "model": model_tree(layout, parameters.of_member(place, layout)),
        "optimizer": optimizer,
        "scheduler": scheduler,
        "steps": member.decision.state(step),
        **member.watches.state(),
    }


def _optimizer_tree(
    options: Optimization, count: int, step: int, member: Member
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The states of PyTorch's optimiser and scheduler after `step` steps, moments left out."""
    optimizer, scheduler = copy.deepcopy(_fresh_trees(options, count))
    if scheduler is not None:
        rate = options.learning_rate * options.factor(step, member.run.steps)
        optimizer["param_groups"][0]["lr"] = rate
        scheduler |= {"last_epoch": step, "_step_count": step + 1, "_last_lr": [rate]}
    return optimizer, scheduler


@lru_cache(maxsize=64)
def _fresh_trees(options: Optimization, count: int) -> tuple[dict[str, Any], dict[str, Any] | None]:
    stand_ins = [nn.Parameter(torch.zeros(1)) for _ in range(count)]
    optimizer, scheduler = options.build(stand_ins, 1)
    return optimizer.state_dict(), None if scheduler is None else dict(scheduler.state_dict())
