"""Scores of all members on a split: outputs for all at once, then each task's own metric."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import torch
from torch import Tensor

from taskmix.engine._fleet._ahead import are_sentences, targets_of_a_row
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._layout import StackedParameters
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._perceptron import LossEncoder
from taskmix.engine._fleet._written import written_scores
from taskmix.models import target_scale
from taskmix.tasks import Inputs
from taskmix.training import Score, score_outputs

ROWS = 512  # of a batch at most, as in a solo run
BLOCK = 1 << 26  # numbers a block of members may put out


def evaluate_members(
    fleet: StackedModels,
    places: Sequence[int],
    parameters: StackedParameters,
    split: str,
    *,
    with_credits: bool = False,
    slot: int | None = None,  # of the one task of each that is scored; None: all of its tasks
) -> list[tuple[Score, ...]]:
    """The scores of some members of a fleet, in order, as `evaluate` gives them."""
    members = [fleet.members[place] for place in places]
    if len(places) < len(fleet.members):
        parameters = parameters.keep(torch.tensor(places, device=fleet.device))
    if isinstance(fleet.encoder, LossEncoder):
        written = written_scores(fleet, members, parameters, split, with_credits=with_credits)
        return [_of_slot(*pair, slot) for pair in zip(members, written, strict=True)]
    scored = [_slots(member, split, slot) for member in members]
    most = max(map(_length, members, scored, repeat(split)))
    heads = max(map(len, scored))
    classes = max(task.outputs for member in members for task in member.tasks)
    words = max(map(_words, members, scored, repeat(split)))
    size = max(1, BLOCK // max(heads * most * words * classes, 1))
    found: list[tuple[Score, ...]] = []
    for first in range(0, len(members), size):
        block, slots = members[first : first + size], scored[first : first + size]
        some = parameters.block(first, first + size)
        outputs = _outputs(fleet, some, block, slots, split, words)
        found += [
            _scores(*each, split, with_credits) for each in zip(block, slots, outputs, strict=True)
        ]
    return found


def _of_slot(member: Member, scores: tuple[Score, ...], slot: int | None) -> tuple[Score, ...]:
    return tuple(s for s in scores if slot is None or s.task == member.tasks.names[slot])


def _slots(member: Member, split: str, only: int | None) -> list[int]:
    """The slots whose tasks have rows in the split, all or one of them."""
    return [
        slot
        for slot, task in enumerate(member.tasks)
        if only in (None, slot) and split in task.splits and len(task.splits[split])
    ]


def _length(member: Member, slots: Sequence[int], split: str) -> int:
    return max([len(member.tasks[slot].splits[split]) for slot in slots] or [0])


def _words(member: Member, slots: Sequence[int], split: str) -> int:
    return max([targets_of_a_row(member.tasks[slot], split) for slot in slots] or [1])


def _outputs(
    fleet: StackedModels,
    parameters: StackedParameters,
    block: Sequence[Member],
    slots: Sequence[Sequence[int]],  # of each member, those that are scored
    split: str,
    words: int,
) -> list[Tensor]:
    """For each member [its slots that are scored, class, row, word], on the CPU.

    Rows and words beyond a task's own mean nothing.
    """
    grouped = list(map(_groups, block, slots, repeat(split)))
    groups = max(1, *(len(inputs) for inputs, _ in grouped))
    length = max(1, *map(_length, block, slots, repeat(split)))
    starts = torch.zeros(len(block), groups, 1, dtype=torch.long)
    sizes = torch.ones(len(block), groups, 1, dtype=torch.long)
    heads: list[int] = []
    code_of: list[int] = []
    for place, (inputs, group_of) in enumerate(grouped):
        for group, each in enumerate(inputs):
            starts[place, group], sizes[place, group] = fleet.numbering.start(each), len(each)
        heads += [place * fleet.slots_count + slot for slot in group_of]
        code_of += [place * groups + group for group in group_of.values()]
    if not heads:
        return [torch.empty(0, 0, 0, 0)] * len(block)
    # Rows beyond the end of a group's inputs are its last one again.
    rows = (starts + torch.minimum(torch.arange(length), sizes - 1)).to(fleet.device)
    which, codes = (torch.tensor(places, device=fleet.device) for places in (heads, code_of))
    # No more rows at once than a training step is known to have room for, about.
    size = min(ROWS, max(32, 2 * fleet.rows * fleet.groups // groups))
    parts = [
        fleet.outputs(parameters, rows[:, :, begin : begin + size], which, codes, words)
        for begin in range(0, length, size)
    ]
    found = torch.cat(parts, dim=2).cpu()
    return list(torch.split(found, [len(group_of) for _, group_of in grouped]))


def _groups(
    member: Member, slots: Sequence[int], split: str
) -> tuple[list[Inputs], dict[int, int]]:
    """The distinct inputs of a split, and which of them each slot reads."""
    inputs: list[Inputs] = []
    places: dict[int, int] = {}
    group_of: dict[int, int] = {}
    for slot in slots:
        its = member.tasks[slot].splits[split].inputs
        if id(its) not in places:
            places[id(its)] = len(inputs)
            inputs.append(its)
        group_of[slot] = places[id(its)]
    return inputs, group_of


def _scores(
    member: Member, slots: Sequence[int], outputs: Tensor, split: str, with_credits: bool
) -> tuple[Score, ...]:
    found: list[Score] = []
    for place, slot in enumerate(slots):
        task = member.tasks[slot]
        own = outputs[place, : task.outputs, : len(task.splits[split])].permute(1, 2, 0)
        words = targets_of_a_row(task, split)
        own = (own[:, :words] if are_sentences(task, split) else own[:, 0]).contiguous()
        if task.kind == "regression":
            mean, deviation = target_scale(member.tasks, task)
            own = (own * torch.tensor(deviation) + torch.tensor(mean)).squeeze(-1)
        found += score_outputs(task, split, own, member.losses[slot], with_credits=with_credits)
    return tuple(found)
