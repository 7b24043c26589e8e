"""Where each parameter of a member lies among the stacked ones.

Parameters of the encoder are stacked as [member, ...], those of the heads as [member, slot, ...]: slot
s of a member is its s-th task. Members may differ in features, words and classes; the stacked tensor
is as large as the largest, and what is beyond a member's own shape is 0 and stays 0, because no input
and no loss ever reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from taskmix.models import HardSharing, Head

HEAD = "head."  # what the keys of heads begin with


@dataclass(frozen=True)
class ParameterPlace:
    """One trained parameter of a member."""

    name: str  # in the model's `state_dict`
    key: str  # of the stacked tensor
    slot: int | None  # None in the encoder
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ParameterLayout:
    """A member's model: what trains, in the optimiser's order, and what does not."""

    places: tuple[ParameterPlace, ...]
    fixed: Mapping[str, Tensor]  # frozen parameters and buffers
    names: tuple[str, ...]  # of the `state_dict`, in its order

    @classmethod
    def of(cls, model: HardSharing) -> ParameterLayout:
        places = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                key, slot = _key(model, name)
                places.append(ParameterPlace(name, key, slot, tuple(parameter.shape)))
        trained = {place.name for place in places}
        state = model.state_dict()
        fixed = {name: value for name, value in state.items() if name not in trained}
        return cls(tuple(places), fixed, tuple(state))


def _key(model: HardSharing, name: str) -> tuple[str, int | None]:
    part, _, rest = name.partition(".")
    if part == "encoder":
        return name, None
    number, _, rest = rest.partition(".")
    head: nn.Module = model.heads[int(number)]
    if not isinstance(head, Head):  # a regression's: the head, then its unit
        rest = rest.partition(".")[2]
    return HEAD + rest, int(number)


class StackedParameters:
    """One number for each trained parameter of each member: the parameters, or a moment of theirs."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.tensors = tensors

    @classmethod
    def of(
        cls, layouts: Sequence[ParameterLayout], values: Sequence[Mapping[str, Tensor] | None]
    ) -> StackedParameters:
        """Stacks the values of each member, by name; a member that has none gets zeros."""
        slots = 1 + max(place.slot or 0 for layout in layouts for place in layout.places)
        shapes: dict[str, tuple[int, ...]] = {}
        for layout in layouts:
            for place in layout.places:
                known = shapes.get(place.key, place.shape)
                shapes[place.key] = tuple(map(max, known, place.shape))
        stack = cls(
            {
                key: torch.zeros(
                    (len(layouts), slots, *shape)
                    if key.startswith(HEAD)
                    else (len(layouts), *shape)
                )
                for key, shape in shapes.items()
            }
        )
        for member, (layout, given) in enumerate(zip(layouts, values, strict=True)):
            if given is not None:
                for place, view in stack.views(member, layout):
                    if place.name in given:
                        view.copy_(given[place.name])
        return stack

    def views(self, member: int, layout: ParameterLayout) -> list[tuple[ParameterPlace, Tensor]]:
        """Each parameter of a member, within the stacked tensors."""
        found = []
        for place in layout.places:
            whole = self.tensors[place.key][member]
            whole = whole if place.slot is None else whole[place.slot]
            found.append((place, whole[tuple(slice(size) for size in place.shape)]))
        return found

    def of_member(self, member: int, layout: ParameterLayout) -> dict[str, Tensor]:
        """A member's own values, by name, as a solo model has them."""
        return {place.name: view.contiguous() for place, view in self.views(member, layout)}

    def zeros(self) -> StackedParameters:
        return StackedParameters(
            {key: torch.zeros_like(value) for key, value in self.tensors.items()}
        )

    def clone(self) -> StackedParameters:
        return StackedParameters({key: value.clone() for key, value in self.tensors.items()})

    def to(self, device: torch.device | str) -> StackedParameters:
        return StackedParameters({key: value.to(device) for key, value in self.tensors.items()})

    def keep(self, members: Tensor) -> StackedParameters:
        """Only these members."""
        return StackedParameters(
            {key: value.index_select(0, members) for key, value in self.tensors.items()}
        )

    def block(self, first: int, end: int) -> StackedParameters:
        """Some members in a row, as views."""
        return StackedParameters({key: value[first:end] for key, value in self.tensors.items()})

    def copy_members(self, members: Tensor, source: StackedParameters) -> None:
        """Takes over the values of these members."""
        for key, value in self.tensors.items():
            value.index_copy_(0, members, source.tensors[key].index_select(0, members))

    def finite(self) -> Tensor:
        """[member], whether all values are."""
        parts = [torch.isfinite(value).flatten(1).all(dim=1) for value in self.tensors.values()]
        return torch.stack(parts).all(dim=0)

    @property
    def parts(self) -> tuple[list[str], list[str]]:
        """The keys of the encoder and those of the heads, in order."""
        encoder = [key for key in self.tensors if not key.startswith(HEAD)]
        return encoder, [key for key in self.tensors if key.startswith(HEAD)]
