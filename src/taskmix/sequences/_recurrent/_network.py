"""Gated recurrent networks side by side: one pass for K generators, their weights in one row each.

    Cho et al., "Learning Phrase Representations using RNN Encoder–Decoder", EMNLP 2014, Eqs. 5 to 8, in
    the variant of PyTorch's `nn.GRU`, where the reset gate acts after the matrix.

A network reads the last observation and says what comes next: logits of symbols and of the end, or a
mean and the logarithm of a variance for each number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taskmix.sequences._generator import Floats

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NetworkLayout:
    """How the row of weights is cut. `inputs` are the rows of a table for symbols (`embedded`)."""

    inputs: int  # symbols, a beginning and a missing one; or two for each number
    embedded: int  # 0 where inputs are numbers
    hidden: int
    outputs: int

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        width = self.embedded or self.inputs
        table: dict[str, tuple[int, ...]] = {}
        if self.embedded:
            table["table"] = (self.inputs, self.embedded)
        return table | {
            "read": (width, 3 * self.hidden),
            "recur": (self.hidden, 3 * self.hidden),
            "read_bias": (1, 3 * self.hidden),
            "recur_bias": (1, 3 * self.hidden),
            "say": (self.hidden, self.outputs),
            "say_bias": (1, self.outputs),
        }

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def cut(self, weights: Tensor) -> dict[str, Tensor]:
        """[generator, ...] of each name."""
        parts, place = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            parts[name] = weights[:, place : place + size].reshape(len(weights), *shape)
            place += size
        return parts

    def draw(self, count: int, generator: np.random.Generator) -> Floats:
        """Even within one over the root of the hidden size, as PyTorch begins; tables are normal."""
        bound = 1 / np.sqrt(self.hidden)
        weights = generator.uniform(-bound, bound, (count, self.size))
        table = self.inputs * self.embedded
        weights[:, :table] = 0.3 * generator.normal(size=(count, table))
        return weights


def run(layout: NetworkLayout, weights: Tensor, inputs: Tensor) -> Tensor:
    """What each network says after each of its inputs: [generator, sequence, time, output].

    `inputs` are codes [sequence, time] or numbers [sequence, time, input], the same for all.
    """
    import torch

    parts = layout.cut(weights)
    if layout.embedded:
        read = parts["table"] @ parts["read"] + parts["read_bias"]  # [generator, code, 3 hidden]
        moved = read[:, inputs]  # [generator, sequence, time, 3 hidden]
    else:
        moved = torch.einsum("sti,kih->ksth", inputs, parts["read"])
        moved = moved + parts["read_bias"][:, :, None]
    state = weights.new_zeros(len(weights), inputs.shape[0], layout.hidden)
    said = []
    for t in range(inputs.shape[1]):
        recurring = torch.baddbmm(parts["recur_bias"], state, parts["recur"])
        read_reset, read_keep, read_new = moved[:, :, t].chunk(3, dim=-1)
        reset, keep, new = recurring.chunk(3, dim=-1)
        candidate = torch.tanh(read_new + torch.sigmoid(read_reset + reset) * new)
        share = torch.sigmoid(read_keep + keep)
        state = candidate + share * (state - candidate)
        said.append(state)
    states = torch.stack(said, dim=2).flatten(1, 2)
    found = torch.baddbmm(parts["say_bias"], states, parts["say"])
    return found.reshape(len(weights), *inputs.shape[:2], layout.outputs)
