"""Members of one architecture as one model with a member axis, and a training step of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from taskmix.engine._fleet._ahead import Ahead, BatchIndex, Moment, targets_of_a_row
from taskmix.engine._fleet._decisions import AllTasks
from taskmix.engine._fleet._dropout import Dropout, Masked, Shapes
from taskmix.engine._fleet._encoder import build_encoder
from taskmix.engine._fleet._heads import Heads, Slots, losses_of
from taskmix.engine._fleet._layout import StackedParameters
from taskmix.engine._fleet._members import Member, Start
from taskmix.engine._fleet._optimizer import StackedOptimizer, clip
from taskmix.engine._fleet._perceptron import LossEncoder, Room
from taskmix.engine._fleet._pool import Numbering
from taskmix.engine._fleet._weighing import Weighing, build_weighing
from taskmix.engine._run import find_device


class StackedModels:
    """The members' parameters, stacked, and what a step on all of them needs."""

    def __init__(self, members: Sequence[Member], *, compiled: bool = False) -> None:
        self.members = list(members)
        run = members[0].run
        self.run = run  # what holds for all: anything but seed, tasks, rates and labels
        self.device = find_device(run.device)
        self.one_task = run.weighting is None
        starts = [_started(member) for member in members]
        self.step = starts[0].step
        layouts = [member.layout for member in members]
        tasks = [member.tasks for member in members]
        self.slots_count = max(map(len, tasks))

        self.parameters = StackedParameters.of(layouts, [s.parameters for s in starts]).to(
            self.device
        )
        self.best = StackedParameters.of(layouts, [s.best for s in starts]).to(self.device)
        self._encoder_keys, head_keys = self.parameters.parts
        self._heads = Heads(head_keys)
        moments = {
            name: StackedParameters.of(layouts, [s.moments.get(name) for s in starts]).to(
                self.device
            )
            for name in StackedOptimizer.names(run.optimization)
        }
        self.optimizer = StackedOptimizer(
            [member.run.optimization for member in members],
            self.parameters,
            moments,
            self.step,
            self._head_steps(starts) if self.one_task else None,
            self.device,
        )
        self.numbering = Numbering(tasks)
        self._precision: torch.dtype = getattr(torch, run.precision)
        self.encoder = build_encoder(
            run.architecture,
            self.numbering,
            self.device,
            self._precision,
            run.steps - self.step,
            compiled=compiled,
        )
        self._slots = Slots.of(tasks, self.device)
        self._lay_out()
        for member in self.members:
            member.start = None  # the stacks have it now

    def _head_steps(self, starts: Sequence[Start]) -> Tensor:
        """How many steps each head has taken, [member, slot]."""
        steps = torch.zeros(len(self.members), self.slots_count)
        for place, (member, start) in enumerate(zip(self.members, starts, strict=True)):
            for each in member.layout.places:
                if each.slot is not None:
                    steps[place, each.slot] = start.steps.get(each.name, 0.0)
        return steps

    def _lay_out(self) -> None:
        """Everything that depends on which members there are, besides their numbers."""
        members, device = self.members, self.device
        self._batch_index = BatchIndex(members, self.numbering, self.slots_count, device)
        self.groups, self.rows, self.active, self.words, self.labels = (
            self._batch_index.groups,
            self._batch_index.rows,
            self._batch_index.active,
            self._batch_index.words,
            self._batch_index.labels,
        )
        self.weighing: Weighing | None = None
        decisions = [each.decision for each in members if isinstance(each.decision, AllTasks)]
        if decisions:
            self.weighing = build_weighing(decisions, device, sparse=self._batch_index.is_sparse)
            weights = torch.zeros(len(members), self.slots_count)
            for place, decision in enumerate(decisions):
                if decision.weights is not None:
                    weights[place, : len(decision.sizes)] = decision.weights
            self._weights = weights.to(device)
        norms = [member.run.clip_norm for member in members]
        clips = [torch.inf if norm is None else norm for norm in norms]
        self._clips = torch.tensor(clips, device=device) if min(clips) < torch.inf else None
        options: Any = self.run.architecture
        keys = self._heads.keys
        self._dropout = Dropout(
            encoder_rate=getattr(options, "dropout", 0.0),
            widths=self.encoder.widths,
            head_rate=getattr(options, "head_dropout", 0.0),
            head_width=self.parameters.tensors[keys[-2]].shape[-1] if keys else 0,
            groups=self.groups,
            slots=self.active,
            rows=self.rows,
            words=self.words,
        )

    def look_ahead(self, count: int) -> Ahead:
        """Decides for every member what it trains on in the next steps."""
        return self._batch_index.look(count, self.step, with_seeds=bool(self._dropout))

    @property
    def told(self) -> int:
        """How many numbers a step tells of each loss.

        Its value, its weight where that changes, and whether there is one where there may be none.
        """
        return 1 if self.weighing is None else 3 if self._batch_index.is_sparse else 2

    def take(self, ahead: Ahead, moment: Moment, room: Room) -> Tensor:
        """Trains every member by one step; what it tells, [told, member, active slot]."""
        now = ahead.at(moment)
        masks, mask = self._masks(now)
        encoder = {key: self.parameters.tensors[key] for key in self._encoder_keys}
        heads = {key: self.parameters.tensors[key] for key in self._heads.keys}
        slots = self._slots
        if now.drawn is not None:
            slots = slots.take(now.drawn)
            heads = {k: v.flatten(0, 1).index_select(0, now.drawn) for k, v in heads.items()}
        leaves = {
            key: value.detach().requires_grad_() for key, value in {**encoder, **heads}.items()
        }
        with torch.enable_grad(), self._autocast():
            flat = {key: leaves[key] for key in heads}
            if now.drawn is None:
                flat = {key: value.flatten(0, 1) for key, value in flat.items()}
            if isinstance(self.encoder, LossEncoder):
                losses = self.encoder.losses(
                    leaves, now.rows, now.classes, now.shares, self._batch_index.code_of, room
                )
            else:
                codes = self.encoder(leaves, now.rows, masks, room)
                outputs = self._heads(flat, self._by_slot(codes), mask)
                losses = losses_of(outputs, slots, now.classes, now.values, now.shares, now.marks)
            losses = losses.view(len(self.members), self.active)
        present = None if now.present is None else now.present.view_as(losses)
        weights = self._weigh(losses.detach(), moment, present)
        found = torch.autograd.grad(losses, list(leaves.values()), weights)
        gradients = {key: value.contiguous() for key, value in zip(leaves, found, strict=True)}
        if self._clips is not None:
            gradients = clip(gradients, self._clips)
        factor = float(now.factors) if self.device.type == "cpu" else now.factors
        with torch.no_grad():
            if now.drawn is None:
                self.optimizer.step_all(gradients, factor)
            else:
                of_heads = {key: gradients.pop(key) for key in heads}
                self.optimizer.step_all(gradients, factor)
                self.optimizer.step_drawn(now.drawn, heads, of_heads, factor)
        told = [losses.detach(), weights] if self.weighing is not None else [losses.detach()]
        return torch.stack(told if present is None else [*told, present.to(losses)])

    @torch.no_grad()
    def _weigh(self, losses: Tensor, moment: Moment, present: Tensor | None) -> Tensor:
        """What each loss counts in this step."""
        if self.one_task:
            return torch.ones_like(losses)
        return self._weights if self.weighing is None else self.weighing(losses, moment, present)

    def _by_slot(self, codes: Tensor) -> Tensor:
        """[member, group * row * word, feature] to [member * active slot, row * word, feature]."""
        codes = codes.view(len(self.members) * self.groups, self.rows * self.words, -1)
        code_of = self._batch_index.code_of
        return codes if code_of is None else codes.index_select(0, code_of)

    def _masks(self, now: Ahead) -> Masked:
        if now.seeds is None:
            return [], None
        if self.device.type != "cpu":
            return self._dropout.hashed(now.seeds)
        drawn = None if now.drawn is None else (now.drawn % self.slots_count).tolist()
        shapes = [
            _shapes(member, None if drawn is None else drawn[place])
            for place, member in enumerate(self.members)
        ]
        return self._dropout.draw(now.seeds.tolist(), shapes)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type,
            self._precision,
            enabled=self._precision != torch.float32,
            cache_enabled=False,  # a CUDA graph must not keep what the cache holds
        )

    @torch.no_grad()
    def outputs(
        self,
        parameters: StackedParameters,
        rows: Tensor,
        heads: Tensor,
        code_of: Tensor,
        words: int,
    ) -> Tensor:
        """What heads of some members say to rows [member, group, row]: [head, class, row, word].

        `heads` are places among the members' slots, and `code_of` says which codes each reads.
        """
        count, groups, length = rows.shape
        with self._autocast():
            room = self.encoder.room(rows.unsqueeze(0), words)
            codes = self.encoder(parameters.tensors, rows, (), room)
            codes = codes.view(count * groups, length * words, -1).index_select(0, code_of)
            flat = {
                key: parameters.tensors[key].flatten(0, 1).index_select(0, heads)
                for key in self._heads.keys
            }
            outputs = self._heads(flat, codes, None).float()
            return outputs.view(*outputs.shape[:2], length, words)

    @torch.no_grad()
    def codes(self, parameters: StackedParameters, rows: Tensor, words: int) -> Tensor:
        """What the encoders of some members give for rows [member, group, row] of so many words."""
        with self._autocast():
            return self.encoder(parameters.tensors, rows, (), self.encoder.room(rows[None], words))

    def keep(self, places: Sequence[int]) -> None:
        """Goes on with these members alone."""
        chosen = torch.tensor(places, device=self.device)
        heads = (chosen.unsqueeze(1) * self.slots_count).add(
            torch.arange(self.slots_count, device=self.device)
        )
        if self.weighing is not None:
            self.weighing.settle()
        self.members = [self.members[place] for place in places]
        self.parameters = self.parameters.keep(chosen)
        self.best = self.best.keep(chosen)
        options = [member.run.optimization for member in self.members]
        self.optimizer = self.optimizer.keep(chosen, options, self.parameters)
        self._slots = self._slots.take(heads.flatten())
        self._lay_out()


def _started(member: Member) -> Start:
    assert member.start is not None
    return member.start


def _shapes(member: Member, drawn: int | None) -> Shapes:
    """How large a member's dropout draws are in a step."""
    last = [place for place in member.layout.places if place.key.endswith(".weight")]
    features = [0] * len(member.tasks)
    for place in last:
        if place.slot is not None:
            features[place.slot] = place.shape[1]  # the output layer comes last
    decision = member.decision
    words = [targets_of_a_row(task) for task in member.tasks]
    if drawn is not None:
        return Shapes([(decision.sizes[drawn], [drawn])], features, words)
    batches = [(decision.sizes[group[0]], group) for group in decision.groups]
    return Shapes(batches, features, words)
