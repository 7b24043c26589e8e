"""The steps to come: rows, targets and draws of many steps at once, on the device.

Nothing of a step has to be asked of the host while it runs: a step reads its place in these tensors,
by number or, within a CUDA graph, by a counter on the device, and leaves its losses in another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._pool import Numbering
from taskmix.tasks import MISSING, EncodedTask, EncodedTasks
from taskmix.training import mixed_seed, sparse_tasks

Moment = int | Tensor  # which step: a number, or a tensor [1] on the device


@dataclass
class Ahead:
    """What each of the next steps takes; every tensor is [step, ...]."""

    rows: Tensor  # [step, member, group, row], numbers in the pool
    classes: Tensor  # [step, member * slot, row * word]
    shares: Tensor  # [step, member * slot, row * word]: one over those with a target, 0 without one
    factors: Tensor  # [step], of the learning rates
    values: Tensor | None = None  # [step, member * slot, row * word], targets of regressions
    marks: Tensor | None = None  # [step, member * slot, label, row]: 1, 0 or `MISSING`
    present: Tensor | None = None  # [step, member * slot], whether any row has a target; None: all
    drawn: Tensor | None = None  # [step, member], the place of the drawn head among all heads
    seeds: Tensor | None = None  # [step, member], of dropout

    def at(self, moment: Moment) -> Ahead:
        """The parts of one step."""
        return self._each(lambda values: _select(values, moment))

    def stretched(self, steps: int) -> Ahead:
        """Room for that many steps like these."""
        return self._each(lambda values: values.new_zeros(steps, *values.shape[1:]))

    def fill(self, other: Ahead) -> None:
        """Takes over the content of another, which is not longer, without moving in memory."""
        for name, values in other._tensors():
            getattr(self, name)[: len(values)].copy_(values)

    def hold_for(self, stream: torch.cuda.Stream) -> None:
        """Keeps the memory until what is at work on the stream has read it."""
        for _, values in self._tensors():
            values.record_stream(stream)

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for field in fields(self):
            values = getattr(self, field.name)
            if values is not None:
                yield field.name, values

    def _each(self, change: Callable[[Tensor], Tensor]) -> Ahead:
        return Ahead(**{name: change(values) for name, values in self._tensors()})


def _select(values: Tensor, moment: Moment) -> Tensor:
    return values[moment] if isinstance(moment, int) else values.index_select(0, moment)[0]


class Targets:
    """The targets of all members' training rows, one after another.

    A row that is a sentence has as many as `words`, the longest sentence of any task; other rows have
    one, and nothing in the places after it. Rows that may have several labels have none of these, but a
    mark for each of as many labels as `labels`.
    """

    def __init__(self, members: Sequence[EncodedTasks], slots: int, device: torch.device) -> None:
        starts = torch.zeros(len(members), slots, dtype=torch.long)
        known: dict[int, int] = {}
        classes, values, marks, begin = [], [], [], 0
        regressions = any(task.kind == "regression" for tasks in members for task in tasks)
        self.words = max(targets_of_a_row(task) for tasks in members for task in tasks)
        several = [t for tasks in members for t in tasks if t.kind == "multilabel"]
        self.labels = max([task.outputs for task in several], default=0)
        for member, tasks in enumerate(members):
            for slot, task in enumerate(tasks):
                targets = task.splits["train"].targets
                if id(targets) not in known:
                    known[id(targets)] = begin
                    begin += len(targets)
                    real = targets.is_floating_point()
                    shape = (len(targets), self.words)
                    wide = targets.unsqueeze(1) if targets.dim() == 1 else targets
                    place = (slice(None), slice(wide.shape[1]))
                    classes.append(torch.full(shape, MISSING))
                    values.append(torch.full(shape, torch.nan))
                    marks.append(torch.full((len(targets), self.labels), MISSING, dtype=torch.int8))
                    into = marks if task.kind == "multilabel" else values if real else classes
                    into[-1][place] = wide
                starts[member, slot] = known[id(targets)]
        self.starts = starts.to(device)  # [member, slot]
        self._classes = torch.cat(classes).to(device)
        self._values = torch.cat(values).to(device) if regressions else None
        self._marks = torch.cat(marks).to(device) if several else None

    def marks_of(self, places: Tensor, there: Tensor) -> Tensor | None:
        """Of rows [step, slot, row] the marks, [step, slot, label, row]; None where no task has any."""
        if self._marks is None:
            return None
        marks = self._marks[places].masked_fill_(~there.unsqueeze(-1), MISSING)
        return marks.transpose(-1, -2).contiguous()

    def of(self, places: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Of rows [step, slot, row] the classes, shares and values, [step, slot, row * word].

        `there` says which rows are any.
        """
        there = there.repeat_interleave(self.words, dim=-1)
        classes = self._classes[places].flatten(-2)
        known = classes != MISSING
        values = None
        if self._values is not None:
            values = self._values[places].flatten(-2)
            known = known | ~values.isnan()
            values = values.nan_to_num_(0.0)
        known = known & there
        counts = known.sum(dim=-1, keepdim=True).clamp_(min=1)
        return classes.clamp_(min=0), known / counts, values


def targets_of_a_row(task: EncodedTask, split: str = "train") -> int:
    """How many places a row's targets take: one, or one for each word of its longest sentence."""
    return task.splits[split].targets.shape[1] if are_sentences(task, split) else 1


def are_sentences(task: EncodedTask, split: str = "train") -> bool:
    """Whether a row is a sentence, each of whose words has a target."""
    return task.kind != "multilabel" and task.splits[split].targets.dim() > 1


class BatchIndex:
    """Where each member's rows and targets lie, and which slot reads which batch.

    A step of a member has `groups` batches of at most `rows` rows, each read by some of its slots;
    with a policy there is one batch, and one slot that is `active`.
    """

    def __init__(
        self, members: Sequence[Member], numbering: Numbering, slots: int, device: torch.device
    ) -> None:
        self._members = members
        self._device = device
        self._one_task = members[0].run.weighting is None
        self.groups = max(len(member.decision.groups) for member in members)
        self.rows = max(max(member.decision.sizes) for member in members)
        self.active = 1 if self._one_task else slots
        count = len(members)
        starts = torch.zeros(count, slots, dtype=torch.long)  # of a slot's inputs in the pool
        group_starts = torch.zeros(count, self.groups, dtype=torch.long)
        group_of = torch.zeros(count, slots, dtype=torch.long)
        there = torch.zeros(count, slots, dtype=torch.bool)  # whether the member has such a slot
        for place, member in enumerate(members):
            there[place, : len(member.tasks)] = True
            for slot, task in enumerate(member.tasks):
                starts[place, slot] = numbering.start(task.splits["train"].inputs)
            for group, its in enumerate(member.decision.groups):
                group_of[place, its] = group
                group_starts[place, group] = starts[place, its[0]]
        self._starts, self._group_starts = starts.to(device), group_starts.to(device)
        self._group_of, self._there = group_of.to(device), there.to(device)
        self._first_head = (torch.arange(count) * slots).to(device)
        self._targets = Targets([member.tasks for member in members], slots, device)
        self.words, self.labels = self._targets.words, self._targets.labels
        # Whether a step may have no target of some task: then it says which tasks it has one of.
        self.is_sparse = not self._one_task and any(
            sparse_tasks(member.tasks, member.decision.groups) for member in members
        )
        # [member * slot], which of the codes [member * group] a slot reads; None: its own.
        self.code_of: Tensor | None = None
        own = torch.arange(slots).expand(count, -1)
        if not self._one_task and (self.groups < slots or not bool((group_of == own)[there].all())):
            first = torch.arange(count).unsqueeze(1) * self.groups
            self.code_of = (first + group_of).flatten().to(device)

    def look(self, count: int, step: int, *, with_seeds: bool) -> Ahead:
        """Decides for every member what it trains on in the `count` steps after `step`."""
        members = self._members
        rows = torch.full((count, len(members), self.groups, self.rows), -1)
        slots = torch.zeros(count, len(members), 1, dtype=torch.long)
        for place, member in enumerate(members):
            drawn = member.decision.take(count, rows[:, place])
            if drawn is not None:
                slots[:, place, 0] = torch.from_numpy(drawn)
        rows, slots = rows.to(self._device), slots.to(self._device)
        known = rows >= 0
        rows = rows.clamp_(min=0)
        starts, targets = self._group_starts.expand(count, -1, -1), self._targets.starts
        read, is_read = rows, known  # the same by slot
        if self._one_task:
            starts = self._starts.expand(count, -1, -1).gather(2, slots)
            targets = targets.expand(count, -1, -1).gather(2, slots)
        else:
            if self.code_of is not None:
                batches = self._group_of[None, :, :, None].expand(count, -1, -1, self.rows)
                read, is_read = rows.gather(2, batches), known.gather(2, batches)
            is_read = is_read & self._there.unsqueeze(-1)
        places = (read + targets.unsqueeze(-1)).flatten(1, 2)
        classes, shares, values = self._targets.of(places, is_read.flatten(1, 2))
        marks = self._targets.marks_of(places, is_read.flatten(1, 2))
        present = None
        if self.is_sparse:
            present = (shares > 0).any(dim=-1)
            if marks is not None:
                present |= (marks != MISSING).flatten(2).any(dim=-1)
        return Ahead(
            rows=rows + starts.unsqueeze(-1),
            classes=classes,
            shares=shares,
            values=values,
            marks=marks,
            present=present,
            factors=self._factors(step, count),
            drawn=slots.squeeze(2) + self._first_head if self._one_task else None,
            seeds=self._seeds(step, count) if with_seeds else None,
        )

    def _factors(self, step: int, count: int) -> Tensor:
        """Of the learning rates, [step]."""
        run = self._members[0].run
        factors = [run.optimization.factor(done, run.steps) for done in range(step, step + count)]
        return torch.tensor(factors, device=self._device)

    def _seeds(self, step: int, count: int) -> Tensor:
        """Of dropout, [step, member], as a solo run's step has them."""
        steps = range(step + 1, step + 1 + count)
        seeds = [[mixed_seed(member.seed, number) for member in self._members] for number in steps]
        return torch.tensor(seeds, dtype=torch.long).to(self._device)
