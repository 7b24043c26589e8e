"""Turns the members' decisions about the steps to come into tensors on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from taskmix.engine._fleet._ahead import Ahead, Targets
from taskmix.engine._fleet._members import Member
from taskmix.engine._fleet._pool import Numbering
from taskmix.tasks import MISSING
from taskmix.training import mixed_seed, sparse_tasks


class Lookout:
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
