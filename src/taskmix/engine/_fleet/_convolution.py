"""The text convolution for all members at once, over all texts of a member one after another.

Texts are not padded to the longest of the batch: what is computed is the sum of their lengths, with
a gap of zeros between two. A filter of width k is k matrix products of the vectors, each shifted by
one place, without a copy of them; the largest answer within a text is the maximum of a segment.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._perceptron import Masks, Parameters, lower
from taskmix.engine._fleet._pool import TextPool
from taskmix.engine._fleet._words import StackedWords
from taskmix.models import TextConvolution

_ROOM = 256  # places; shapes that differ by less share a CUDA graph


class TextConvolutionStack:
    """Codes of texts, and of pairs of texts as [u, v, |u - v|, u * v]."""

    widths: tuple[int, ...] = ()

    def __init__(
        self,
        options: TextConvolution,
        first: TextPool,
        second: TextPool | None,
        pairs: Tensor,  # [row], which rows are pairs
        words: StackedWords,
    ) -> None:
        self._kernels = options.kernels
        self._gap = max(1, max(options.kernels) // 2)
        self._pools = [first] if second is None else [first, second]
        self._pairs = pairs
        self._words = words

    def room(self, rows: Tensor, words: int) -> int:
        needed = max(pool.places(rows, self._gap) for pool in self._pools)
        return -(-needed // _ROOM) * _ROOM

    def __call__(self, parameters: Parameters, rows: Tensor, masks: Masks, room: int) -> Tensor:
        rows = rows.flatten(1)
        first, *others = (self._encode(pool, parameters, rows, room) for pool in self._pools)
        if not others:
            return first
        second = others[0]
        rest = torch.cat([second, (first - second).abs(), first * second], dim=2)
        # A single text's code ends where a pair's goes on.
        return torch.cat([first, rest * self._pairs[rows].unsqueeze(-1)], dim=2)

    def _encode(self, pool: TextPool, parameters: Parameters, rows: Tensor, room: int) -> Tensor:
        members = len(rows)
        ids, ends = pool.gather(rows, self._gap, room)
        vectors = self._words(parameters, functional.pad(ids, (self._gap, self._gap)))
        inside = (ids != 0).unsqueeze(-1)
        found = []
        for place, width in enumerate(self._kernels):
            weight = parameters[f"encoder.convolutions.{place}.weight"]  # [member, filter, in, k]
            bias = parameters[f"encoder.convolutions.{place}.bias"]
            lowered = lower(vectors, weight.permute(0, 3, 2, 1), bias)
            answer = _Slide.apply(*lowered, self._gap - width // 2, room)  # type: ignore[no-untyped-call]
            # After the ReLU nothing is below 0, so what lies outside a text can be set to 0.
            found.append(answer.relu_() * inside)
        answers = torch.cat(found, dim=2).flatten(0, 1)
        return _largest(answers, ends, room).view(members, rows.shape[1], -1)


class _Slide(torch.autograd.Function):
    """The answers of filters at `room` places, the first of them seeing what lies at `begin`."""

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, begin: int, room: int
    ) -> Tensor:
        weight = weight.contiguous()  # [member, shift, in, filter]
        ctx.save_for_backward(vectors, weight)
        ctx.begin = begin
        answer = torch.baddbmm(bias.unsqueeze(1), vectors[:, begin : begin + room], weight[:, 0])
        for shift in range(1, weight.shape[1]):
            first = begin + shift
            answer.baddbmm_(vectors[:, first : first + room], weight[:, shift])
        return answer

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        vectors, weight = ctx.saved_tensors
        room = gradient.shape[1]
        back = torch.zeros_like(vectors) if ctx.needs_input_grad[0] else None
        parts = []
        for shift in range(weight.shape[1]):
            seen = slice(ctx.begin + shift, ctx.begin + shift + room)
            parts.append(torch.bmm(vectors[:, seen].transpose(1, 2), gradient))
            if back is not None:
                back[:, seen].baddbmm_(gradient, weight[:, shift].transpose(1, 2))
        return back, torch.stack(parts, dim=1), gradient.sum(dim=1), None, None


def _largest(answers: Tensor, ends: Tensor, room: int) -> Tensor:
    """The largest answer of each filter within each text: [member * place, filter] to [row, filter]."""
    starts = torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1]], dim=1)
    lengths = ends - starts
    lengths[:, -1] = room - starts[:, -1]  # what is left over are zeros
    return cast("Tensor", _Largest.apply(answers, lengths.flatten()))  # type: ignore[no-untyped-call]


class _Largest(torch.autograd.Function):
    """The maximum of each segment; equal ones share the gradient, as in `Tensor.amax`.

    (That of `torch.segment_reduce` shares only positive ones.)
    """

    @staticmethod
    def forward(ctx: Any, answers: Tensor, lengths: Tensor) -> Tensor:
        largest = _reduce(answers, "max", lengths)
        ctx.save_for_backward(answers, largest, lengths)
        return largest

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        answers, largest, lengths = ctx.saved_tensors
        numbers = torch.arange(len(lengths), device=lengths.device)
        segment = torch.repeat_interleave(numbers, lengths, output_size=len(answers))
        chosen = (answers == largest.index_select(0, segment)).to(answers.dtype)
        shared = gradient / _reduce(chosen, "sum", lengths)
        return chosen * shared.index_select(0, segment), None


def _reduce(values: Tensor, how: str, lengths: Tensor) -> Tensor:
    return torch.segment_reduce(values, how, lengths=lengths, axis=0, unsafe=True)
