"""The encoders' contract, and the perceptron's hidden layers for all members at once.

An encoder reads pool rows [member, group, row] and gives codes [member, group * row, feature] by
batched matrix products over the member axis. The parameters are those of the solo encoder under the
solo names, with that axis in front, and so is the arithmetic, up to the order of sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from taskmix.engine._fleet._pool import DensePool
from taskmix.models import Perceptron

Parameters = Mapping[str, Tensor]  # [member, ...]
Masks = Sequence[Tensor]  # [member, group * row, feature] of each dropout in the encoder
Room = int | tuple[int, ...]  # the sizes of a step's tensors that depend on its rows


class Encoder(Protocol):
    """Codes of rows, for all members."""

    widths: tuple[int, ...]  # of each place where the encoder drops out

    def room(self, rows: Tensor, words: int) -> Room:
        """What rows [step, member, group, row] of so many words need; 0 where all need the same."""
        ...

    def __call__(self, parameters: Parameters, rows: Tensor, masks: Masks, room: Any) -> Tensor:
        """Codes [member, group * row * word, feature]; a row has one word unless it is a sentence."""
        ...


@runtime_checkable
class LossEncoder(Protocol):
    """An encoder with the output layer of all tasks in it, which finds the losses by itself."""

    def losses(
        self,
        parameters: Parameters,
        rows: Tensor,  # [member, group, row]
        classes: Tensor,  # [member * slot, row * word]
        shares: Tensor,  # [member * slot, row * word]
        code_of: Tensor | None,  # [member * slot], which of the [member * group] a slot reads
        room: Any,
    ) -> Tensor:
        """The mean loss of each slot, [member * slot]."""
        ...


class _Affine(torch.autograd.Function):
    """Each member's own affine map, with the gradient of the weight in the weight's layout.

    Autograd's own comes out transposed, and the optimiser would have to copy it.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return torch.baddbmm(bias.unsqueeze(1), inputs, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        inputs, weight = ctx.saved_tensors
        of_inputs = torch.bmm(gradient, weight) if ctx.needs_input_grad[0] else None
        return of_inputs, torch.bmm(gradient.transpose(1, 2), inputs), gradient.sum(dim=1)


def linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """[member, row, in] to [member, row, out]."""
    lowered = lower(inputs, weight, bias)
    return cast("Tensor", _Affine.apply(*lowered))  # type: ignore[no-untyped-call]


def lower(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in the type that autocast computes in, which it cannot see to in our functions."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return tuple(tensor.to(torch.get_autocast_dtype(device)) for tensor in tensors)


class PerceptronStack:
    """Hidden layers with ReLU, dropout after each where there is any; then the head, if it is one."""

    def __init__(self, options: Perceptron, pool: DensePool) -> None:
        stride = 3 if options.dropout else 2  # modules a layer in the solo encoder
        self.widths = options.hidden if options.dropout else ()
        layers = [f"encoder.{stride * place}" for place in range(len(options.hidden) + 1)]
        self._layers, self._output = layers[:-1], layers[-1] if options.one_head else None
        self._pool = pool

    def room(self, rows: Tensor, words: int) -> Room:
        return 0

    def __call__(self, parameters: Parameters, rows: Tensor, masks: Masks, room: int) -> Tensor:
        code = self._pool.gather(rows.flatten(1))
        for place, layer in enumerate(self._layers):
            weight, bias = parameters[f"{layer}.weight"], parameters[f"{layer}.bias"]
            code = linear(code, weight, bias).relu_()
            if masks:
                code = code * masks[place]
        if self._output is None:
            return code
        return linear(
            code, parameters[f"{self._output}.weight"], parameters[f"{self._output}.bias"]
        )
