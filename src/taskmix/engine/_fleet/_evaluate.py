"""Scores of all members on a split: outputs for all at once, then each task's own metric.

Of members that write text, sums over places are taken on the device: what a model says to every place of
a split is far more than its score; only the sums leave the device, over all rows, or row by row where it
is asked what each of them adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._ahead import are_sentences, targets_of_a_row
from taskmix.engine._fleet._causal import place_losses
from taskmix.engine._fleet._fleet import StackedModels
from taskmix.engine._fleet._layout import StackedParameters
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._perceptron import LossEncoder
from taskmix.models import target_scale
from taskmix.tasks import MISSING, EncodedSplit, Inputs, WrittenText
from taskmix.training import Score, WrittenRows, score_outputs, score_written

ROWS = 512  # of a batch at most, as in a solo run
BLOCK = 1 << 26  # numbers a block of members may put out


def evaluate_members(
    fleet: StackedModels,
    places: Sequence[int],
    parameters: StackedParameters,
    split: str,
    *,
    with_credits: bool = False,
) -> list[tuple[Score, ...]]:
    """The scores of some members of a fleet, in order, as `evaluate` gives them."""
    members = [fleet.members[place] for place in places]
    if len(places) < len(fleet.members):
        parameters = parameters.keep(torch.tensor(places, device=fleet.device))
    if isinstance(fleet.encoder, LossEncoder):
        return written_scores(fleet, members, parameters, split, with_credits=with_credits)
    scored = [_slots(member, split) for member in members]
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


def _slots(member: Member, split: str) -> list[int]:
    """The slots whose tasks have rows in the split."""
    return [
        slot
        for slot, task in enumerate(member.tasks)
        if split in task.splits and len(task.splits[split])
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


WRITTEN_BLOCK = 1 << 28  # numbers that members may put out at once


def written_scores(
    fleet: StackedModels,
    members: Sequence[Member],
    parameters: StackedParameters,
    split: str,
    *,
    with_credits: bool = False,
) -> list[tuple[Score, ...]]:
    """The scores of members with these parameters, in order, as `evaluate` gives them."""
    rows = _SplitRows(fleet, members, split)
    sums = torch.zeros(len(members), rows.slots, 5, dtype=torch.float64, device=fleet.device)
    by_row: list[Tensor] = []  # [member, slot, row, 3]: loss, places, those foreseen
    classes = max(task.outputs for member in members for task in member.tasks)
    size = max(1, WRITTEN_BLOCK // max(1, len(members) * rows.slots * rows.words * classes))
    for begin in range(0, rows.longest, size):
        places, targets = rows.some(begin, begin + size)
        scores = fleet.codes(parameters, places, rows.words).view(*targets.shape, -1)
        losses, known, right = _by_place(scores, targets)
        sums += _sums(losses, known, right)
        if with_credits:
            by_row.append(torch.stack([losses.sum(-1), known.sum(-1), right.sum(-1)], dim=-1).cpu())
    found = sums.cpu()
    every_row = torch.cat(by_row, dim=2) if by_row else None  # [member, slot, row, 3]
    every_score: list[tuple[Score, ...]] = []
    for place, member in enumerate(members):
        of_member: list[Score] = []
        for slot, task in enumerate(member.tasks):
            data = task.splits.get(split)
            if data is None or not len(data):
                continue
            text = _text(data, found[place, slot])
            scores_here = score_written(task, split, text, loss=True)
            if every_row is not None:
                loss, pieces, firsts = every_row[place, slot, : len(data)].unbind(-1)
                by_itself = WrittenRows(loss, firsts.long(), pieces.long())
                scores_here = [by_itself.credited(score, data, text) for score in scores_here]
            of_member += scores_here
        every_score.append(tuple(of_member))
    return every_score


class _SplitRows:
    """The rows of a split, of each slot of each member, and their targets."""

    def __init__(self, fleet: StackedModels, members: Sequence[Member], split: str) -> None:
        self.slots = max(len(member.tasks) for member in members)
        shape = (len(members), self.slots)
        starts, sizes, first = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
        self.words = 1
        known: dict[int, int] = {}
        targets: list[Tensor] = []
        for place, member in enumerate(members):
            for slot, task in enumerate(member.tasks):
                if split not in task.splits or not len(task.splits[split]):
                    continue
                data = task.splits[split]
                if id(data.targets) not in known:
                    known[id(data.targets)] = sum(map(len, targets))
                    targets.append(data.targets)
                    self.words = max(self.words, targets_of_a_row(task, split))
                starts[place, slot] = fleet.numbering.start(data.inputs)
                sizes[place, slot], first[place, slot] = len(data), known[id(data.targets)]
        self.longest = int(sizes.max())
        self._starts, self._sizes, self._first = (
            each.unsqueeze(-1).to(fleet.device) for each in (starts, sizes, first)
        )
        wide = [
            functional.pad(each, (0, self.words - each.shape[1]), value=MISSING) for each in targets
        ]
        self._targets = torch.cat(wide).to(fleet.device) if wide else None

    def some(self, begin: int, end: int) -> tuple[Tensor, Tensor]:
        """Numbers in the pool [member, slot, row], and targets [member, slot, row, place].

        Rows beyond a split's end are its last one again, without targets.
        """
        assert self._targets is not None
        wanted = torch.arange(begin, min(end, self.longest), device=self._starts.device)
        rows = torch.minimum(wanted, (self._sizes - 1).clamp(min=0))
        targets = self._targets[self._first + rows]
        beyond = (wanted >= self._sizes).unsqueeze(-1)
        return self._starts + rows, targets.masked_fill(beyond, MISSING)


def _by_place(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of each place its loss, whether it is known, and whether its target scores best."""
    known = targets != MISSING
    classes = targets.clamp(min=0)
    losses = torch.where(known, place_losses(scores, classes), 0.0).double()
    return losses, known, (scores.argmax(dim=-1) == classes) & known


def _sums(losses: Tensor, known: Tensor, right: Tensor) -> Tensor:
    """Losses, known places, those whose target scores best, rows with any, rows in which all do."""
    any_known = known.any(dim=-1)
    counts = [
        losses.sum((-2, -1)),
        known.sum((-2, -1)),
        right.sum((-2, -1)),
        any_known.sum(-1),
        ((right | ~known).all(dim=-1) & any_known).sum(-1),
    ]
    return torch.stack([count.double() for count in counts], dim=-1)  # [..., 5]


def _text(data: EncodedSplit, sums: Tensor) -> WrittenText:
    loss, pieces, right_pieces, rows, right_rows = sums.tolist()
    return WrittenText(
        rows=int(rows),
        right_rows=int(right_rows),
        pieces=int(pieces),
        right_pieces=int(right_pieces),
        loss=loss,
        bytes=0 if data.target_bytes is None else int(data.target_bytes.sum()),
    )
