"""What the losses of a step count, where that depends on the losses: each member's own weighting.

A method made of tensor operations alone is asked once for all members that have it, by `vmap`, with
their states stacked: nothing of it leaves the device, so a CUDA graph can hold it. Any other method
(one that decides by a loss's value, hears of epochs, or computes on the host) is asked member by
member, and the device waits for the answer in every step.

Weights and states are those of a solo run's `Balancer`: first weights, then what is learned from the
step; NaN and nothing learned where a loss is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from taskmix.engine._fleet._ahead import Moment
from taskmix.engine._fleet._decisions import AllTasks
from taskmix.weighting import AnyLossWeighting, CountsEpochs, Needs


class Weighing(Protocol):
    """The weights of all members' losses, step by step."""

    on_device: bool  # whether a step needs nothing of the host

    def __call__(self, losses: Tensor, moment: Moment, present: Tensor | None) -> Tensor:
        """The weights of losses [member, slot]; the methods learn from the step.

        `present` [member, slot] says which tasks have a loss, where some may have none.
        """
        ...

    def settle(self) -> None:
        """Leaves each method's state with its member's decision."""
        ...


def build_weighing(
    decisions: Sequence[AllTasks],
    device: torch.device,
    *,
    sparse: bool,  # whether some steps have no loss of some tasks
) -> Weighing | None:
    """None where no member's weights ever change."""
    if not sparse and all(decision.weights is not None for decision in decisions):
        return None
    asked: list[tuple[Any, int]] = [(each.method, len(each.sizes)) for each in decisions]
    if all(can_be_stacked(method, tasks, sparse=sparse) for method, tasks in asked):
        return StackedWeighing(decisions, device)
    return MemberWeighing(decisions)


class MemberWeighing:
    """Asks each member's method in turn, on the host."""

    on_device = False

    def __init__(self, decisions: Sequence[AllTasks]) -> None:
        self._decisions = decisions

    def __call__(self, losses: Tensor, moment: Moment, present: Tensor | None) -> Tensor:
        assert isinstance(moment, int), "a graph cannot ask the host"
        values = losses.cpu()
        there = None if present is None else present.cpu()
        weights = torch.zeros_like(values)
        for place, decision in enumerate(self._decisions):
            count = len(decision.sizes)
            own, method = values[place, :count], decision.method
            if not math.isfinite(sum(own.tolist())) and not bool(torch.isfinite(own).all()):
                weights[place, :count] = torch.nan
                continue
            here = None if there is None else there[place, :count]
            if here is not None and bool(here.all()):
                here = None
            weights[place, :count] = method.weigh(decision.method_state, own, here)
            state = method.update(decision.method_state, own, here)
            if decision.epoch_ends[moment] and isinstance(method, CountsEpochs):
                state = method.end_epoch(state)
            decision.method_state = state
        return weights.to(losses.device)

    def settle(self) -> None:
        """They are there."""


class StackedWeighing:
    """Asks once for all members with the same method and as many tasks."""

    on_device = True

    def __init__(self, decisions: Sequence[AllTasks], device: torch.device) -> None:
        alike: dict[tuple[AnyLossWeighting, int], list[int]] = {}
        for place, decision in enumerate(decisions):
            alike.setdefault((decision.method, len(decision.sizes)), []).append(place)
        self._parts = [
            _Part(method, [decisions[place] for place in places], places, device)
            for (method, _), places in alike.items()
        ]

    def __call__(self, losses: Tensor, moment: Moment, present: Tensor | None) -> Tensor:
        if len(self._parts) == 1 and self._parts[0].slots == losses.shape[1]:
            return self._parts[0].weigh(losses, present)
        weights = torch.zeros_like(losses)
        for part in self._parts:
            some, here = (
                None if each is None else each.index_select(0, part.places)[:, : part.slots]
                for each in (losses, present)
            )
            assert some is not None
            found = part.weigh(some, here)
            weights.index_copy_(0, part.places, pad(found, (0, losses.shape[1] - part.slots)))
        return weights

    def settle(self) -> None:
        for part in self._parts:
            part.settle()


class _Part:
    """Members with one method, and their states as tensors [member, ...]."""

    def __init__(
        self,
        method: AnyLossWeighting,
        decisions: Sequence[AllTasks],
        places: Sequence[int],  # among all members
        device: torch.device,
    ) -> None:
        self.slots = len(decisions[0].sizes)
        self.places = torch.tensor(places, device=device)
        self._decisions = decisions
        self._step = _StackedStep(method, method.init(torch.zeros(self.slots, device=device)))
        states = zip(*(tensors_in(decision.method_state) for decision in decisions), strict=True)
        self._states = [
            torch.stack(state).to(like.device)
            for state, like in zip(states, tensors_in(self._step.like), strict=True)
        ]

    def weigh(self, losses: Tensor, present: Tensor | None) -> Tensor:
        weights, states = self._step(losses, self._states, present)
        for old, new in zip(self._states, states, strict=True):
            old.copy_(new)  # a graph finds it where it was
        return weights

    def settle(self) -> None:
        states = [state.cpu() for state in self._states]
        for place, decision in enumerate(self._decisions):
            own = iter([state[place].clone() for state in states])
            decision.method_state = with_tensors(decision.method_state, own)


class _StackedStep:
    """A step of a method for many members: weights, and states after it."""

    def __init__(self, method: AnyLossWeighting, like: Any) -> None:
        self._method = method
        self.like = like  # a state, for its classes
        self._vmapped: Any = torch.func.vmap(self._one)

    def __call__(
        self, losses: Tensor, states: list[Tensor], present: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        more = () if present is None else (present,)
        found: tuple[Tensor, list[Tensor]] = self._vmapped(losses, states, *more)
        return found

    def _one(
        self, losses: Tensor, tensors: list[Tensor], present: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        state = with_tensors(self.like, iter(tensors))
        sound = torch.isfinite(losses).all()
        weights = self._method.weigh(state, losses, present).to(losses.dtype)
        weights = torch.where(sound, weights, torch.nan)
        after = tensors_in(self._method.update(state, losses, present))
        kept = [torch.where(sound, new, old) for new, old in zip(after, tensors, strict=True)]
        return weights, kept


@lru_cache(maxsize=256)
def can_be_stacked(method: Any, tasks: int, *, sparse: bool = False) -> bool:
    """Whether a method can be asked for many members at once: tried out, on losses of no meaning.

    With `sparse`, whether it also can where some tasks have no loss.
    """
    if Needs.HOST in method.needs or Needs.EPOCH in method.needs:
        return False
    losses = torch.linspace(0.5, 1.5, 2 * tasks).view(2, tasks)
    like = method.init(losses[0])
    if not _is_of_tensors(like):
        return False
    before = [torch.stack([tensor, tensor]) for tensor in tensors_in(like)]
    try:
        present = torch.arange(2 * tasks).view(2, tasks) != 0 if sparse else None
        weights, after = _StackedStep(method, like)(losses, before, present)
    except (RuntimeError, ValueError, TypeError):  # what vmap says to a value that is asked for
        return False
    alike = [
        (new.shape, new.dtype) == (old.shape, old.dtype)
        for new, old in zip(after, before, strict=True)
    ]
    return weights.shape == losses.shape and all(alike)


def tensors_in(state: Any) -> list[Tensor]:
    """The tensors of a state, in the order of its fields."""
    if isinstance(state, Tensor):
        return [state]
    if is_dataclass(state) and not isinstance(state, type):
        parts = [getattr(state, each.name) for each in fields(state)]
    else:
        parts = list(state) if isinstance(state, tuple | list) else []
    return [tensor for part in parts for tensor in tensors_in(part)]


def with_tensors(state: Any, tensors: Iterator[Tensor]) -> Any:
    """The state with other tensors, in the same order."""
    if isinstance(state, Tensor):
        return next(tensors)
    if is_dataclass(state) and not isinstance(state, type):
        names = [each.name for each in fields(state)]
        return replace(state, **{n: with_tensors(getattr(state, n), tensors) for n in names})
    if isinstance(state, tuple | list):
        return type(state)(with_tensors(part, tensors) for part in state)
    return state


def _is_of_tensors(state: Any) -> bool:
    """Whether nothing else in a state can change."""
    if is_dataclass(state) and not isinstance(state, type):
        return all(_is_of_tensors(getattr(state, each.name)) for each in fields(state))
    if isinstance(state, tuple | list):
        return all(map(_is_of_tensors, state))
    return state is None or isinstance(state, Tensor)
