"""What dropout leaves, for all members: a function of each member's seed and step alone.

On the CPU every member draws what it would draw alone, number by number, so that a fleet and a solo
run see the same masks. On another device a mask is a hash of (seed, step, place): the solo run's
generator cannot be had there without one call for each member, and a hash, too, gives the same mask
whichever members train together and wherever the run was resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# [member, group * row, feature] of each dropout in the encoder; [member * slot, row * word, feature].
Masked = tuple[list[Tensor], Tensor | None]


@dataclass(frozen=True)
class Shapes:
    """How large one member's draws are."""

    batches: Sequence[tuple[int, Sequence[int]]]  # rows of each batch, and the slots it serves
    features: Sequence[int]  # [slot], what the dropout of a head sees
    words: Sequence[int]  # [slot], places of a row


@dataclass(frozen=True, kw_only=True)
class Dropout:
    """The masks of a step."""

    encoder_rate: float
    widths: tuple[int, ...]  # of the encoder's dropouts
    head_rate: float
    head_width: int
    groups: int
    slots: int
    rows: int
    words: int  # places of a row

    def __bool__(self) -> bool:
        return bool(self.head_rate or (self.encoder_rate and self.widths))

    def draw(self, seeds: Sequence[int], shapes: Sequence[Shapes]) -> Masked:
        """The encoder's masks and the heads', as each member alone draws them; on the CPU."""
        members = len(seeds)
        encoder = [torch.zeros(members, self.groups, self.rows, width) for width in self.widths]
        heads = torch.zeros(members, self.slots, self.rows, self.words, self.head_width)
        generator = torch.Generator()
        for member, (seed, shape) in enumerate(zip(seeds, shapes, strict=True)):
            generator.manual_seed(seed)
            for group, (count, slots) in enumerate(shape.batches):
                for mask in encoder:
                    mask[member, group, :count].bernoulli_(
                        1 - self.encoder_rate, generator=generator
                    )
                for slot in slots if self.head_rate else ():
                    width, words = shape.features[slot], shape.words[slot]
                    place = heads[member, slot if self.slots > 1 else 0, :count]
                    if width == self.head_width and words == self.words:
                        place.bernoulli_(1 - self.head_rate, generator=generator)
                    else:
                        drawn = torch.empty(count, words, width)
                        drawn.bernoulli_(1 - self.head_rate, generator=generator)
                        place[:, :words, :width] = drawn
        return self._scaled(encoder, heads.flatten(2, 3))

    def hashed(self, seeds: Tensor) -> Masked:
        """The same for seeds [member] on a device, without asking the host."""
        members = len(seeds)
        encoder = [
            self._hash(seeds, number, (members, self.groups, self.rows, width), self.encoder_rate)
            for number, width in enumerate(self.widths)
        ]
        shape = (members, self.slots, self.rows * self.words, self.head_width)
        heads = self._hash(seeds, len(self.widths), shape, self.head_rate)
        return self._scaled(encoder, heads)

    def _scaled(self, encoder: list[Tensor], heads: Tensor) -> Masked:
        masks = [mask.div_(1 - self.encoder_rate).flatten(1, 2) for mask in encoder]
        return masks, heads.div_(1 - self.head_rate).flatten(0, 1) if self.head_rate else None

    def _hash(self, seeds: Tensor, number: int, shape: tuple[int, ...], rate: float) -> Tensor:
        count = shape[1] * shape[2] * shape[3]
        own = _scramble(_scramble(seeds) + _wrapped((number + 1) * _GOLDEN))  # of this dropout
        places = torch.arange(count, device=seeds.device) * _wrapped(_GOLDEN)
        mixed = _scramble(own[:, None] + places)
        kept = ((mixed >> 40) & 0xFFFFFF) < round((1 - rate) * (1 << 24))
        return kept.view(shape).float()


def _wrapped(number: int) -> int:
    """The number that its lowest 64 bits are to a tensor."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >= 1 << 63 else number


_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = _wrapped(0xBF58476D1CE4E5B9), _wrapped(0x94D049BB133111EB)


def _scramble(value: Tensor) -> Tensor:
    """The finaliser of SplitMix64 (Steele, 2014), on the wrapping integers of tensors."""
    value = (value ^ ((value >> 30) & ((1 << 34) - 1))) * _FIRST
    value = (value ^ ((value >> 27) & ((1 << 37) - 1))) * _SECOND
    return value ^ ((value >> 31) & ((1 << 33) - 1))
