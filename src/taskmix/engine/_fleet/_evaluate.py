"""Scores of all members on a split: outputs for all at once, then each task's own metric."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from taskmix.engine._fleet._fleet import Fleet
from taskmix.engine._fleet._layout import Stack
from taskmix.engine._fleet._members import Member
from taskmix.models import target_scale
from taskmix.tasks import Inputs
from taskmix.training import Score, score_outputs

ROWS = 512  # of a batch at most, as in a solo run
BLOCK = 1 << 26  # numbers a block of members may put out


def evaluate_members(
    fleet: Fleet, places: Sequence[int], parameters: Stack, split: str
) -> list[tuple[Score, ...]]:
    """The scores of some members of a fleet, in order, as `evaluate` gives them."""
    members = [fleet.members[place] for place in places]
    if len(places) < len(fleet.members):
        parameters = parameters.keep(torch.tensor(places, device=fleet.device))
    most = max(_length(member, split) for member in members)
    classes = max(task.outputs for member in members for task in member.tasks)
    size = max(1, BLOCK // max(fleet.slots_count * most * classes, 1))
    found: list[tuple[Score, ...]] = []
    for first in range(0, len(members), size):
        block = members[first : first + size]
        outputs = _outputs(fleet, parameters.block(first, first + size), block, split)
        found += [_scores(*pair, split) for pair in zip(block, outputs, strict=True)]
    return found


def _length(member: Member, split: str) -> int:
    return max([len(task.splits[split]) for task in member.tasks if split in task.splits] or [0])


def _outputs(fleet: Fleet, parameters: Stack, block: Sequence[Member], split: str) -> Tensor:
    """[member, slot, class, row], on the CPU; rows beyond a task's own mean nothing."""
    grouped = [_groups(member, split) for member in block]
    groups = max(1, *(len(inputs) for inputs, _ in grouped))
    length = max(1, *(_length(member, split) for member in block))
    starts = torch.zeros(len(block), groups, 1, dtype=torch.long)
    sizes = torch.ones(len(block), groups, 1, dtype=torch.long)
    code_of = torch.zeros(len(block), fleet.slots_count, dtype=torch.long)
    for place, (inputs, slots) in enumerate(grouped):
        code_of[place] = place * groups
        for group, each in enumerate(inputs):
            starts[place, group], sizes[place, group] = fleet.numbering.start(each), len(each)
            code_of[place, slots[group]] += group
    # Rows beyond the end of a group's inputs are its last one again.
    rows = starts + torch.minimum(torch.arange(length), sizes - 1)
    rows, code_of = rows.to(fleet.device), code_of.flatten().to(fleet.device)
    # No more rows at once than a training step is known to have room for, about.
    size = min(ROWS, max(32, 2 * fleet.rows * fleet.groups // groups))
    parts = [
        fleet.outputs(parameters, rows[:, :, begin : begin + size], code_of)
        for begin in range(0, length, size)
    ]
    return torch.cat(parts, dim=3).cpu()


def _groups(member: Member, split: str) -> tuple[list[Inputs], list[list[int]]]:
    """The distinct inputs of a split and the slots that read each."""
    inputs: list[Inputs] = []
    slots: list[list[int]] = []
    places: dict[int, int] = {}
    for slot, task in enumerate(member.tasks):
        if split in task.splits and len(task.splits[split]):
            its = task.splits[split].inputs
            if id(its) not in places:
                places[id(its)] = len(inputs)
                inputs.append(its)
                slots.append([])
            slots[places[id(its)]].append(slot)
    return inputs, slots


def _scores(member: Member, outputs: Tensor, split: str) -> tuple[Score, ...]:
    found: list[Score] = []
    for slot, task in enumerate(member.tasks):
        if split not in task.splits or not len(task.splits[split]):
            continue
        own = outputs[slot, : task.outputs, : len(task.splits[split])].T.contiguous()
        if task.kind == "regression":
            mean, deviation = target_scale(member.tasks, task)
            own = (own * torch.tensor(deviation) + torch.tensor(mean)).squeeze(-1)
        found += score_outputs(task, split, own, member.losses[slot])
    return tuple(found)
