"""A method of gradients asked for each part of what is shared, and the weights of every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from taskmix.weighting._found import Found
from taskmix.weighting._weighting import AnyGradientWeighting


@dataclass(frozen=True)
class PartWeights:
    """Weights [task] of a step, float64 on the CPU; 0 for a task without a loss."""

    weights: Tensor  # of heads, and what is reported: those of the part that the most tasks share
    by_part: list[Tensor]  # those of each part of `Found`
    combination: Tensor | None  # the step of the shared part, where the method gives one
    state: Any  # after the step


def weigh_parts(
    method: AnyGradientWeighting,
    state: Any,
    found: Found,
    *,
    normalize: Literal["tasks", "one"] | None,
) -> PartWeights:
    """Asks the method part by part; its state goes from one to the next."""
    step = found.step
    weights = torch.zeros(len(step.names), dtype=torch.float64)
    weights[step.tasks] = 1.0  # of a task that shares nothing with another
    sound = found.finite and bool(torch.isfinite(step.seen[step.tasks]).all())
    waiting = set(step.tasks)
    by_part: list[Tensor] = []
    combination = None
    for part in found.parts:
        tasks = part.tasks
        if sound:
            places = None if len(tasks) == len(step.names) else torch.tensor(tasks)
            balance = method.balance(state, step.seen[tasks], part.measured, places)
            state, raw, combination = balance.state, balance.weights, balance.combination
        else:  # nothing is learned, and nothing hidden: every gradient of this step is NaN
            raw = torch.full((len(tasks),), torch.nan, dtype=torch.float64)
        size = float(raw.abs().sum())
        target = {"tasks": len(tasks), "one": 1, None: size}[normalize]
        unit = target / size if size != 0 else 1.0
        own = torch.zeros_like(weights)
        own[tasks] = raw * unit
        by_part.append(own)
        combination = None if combination is None else combination * unit
        first = sorted(waiting & set(tasks))
        weights[first] = own[first]
        waiting -= set(tasks)
    if not sound:
        weights[step.tasks] = torch.nan
    return PartWeights(weights, by_part, combination, state)
