"""Models of word ids for all members at once: the text convolution and the window BiLSTM.

Vectors of word ids come from one frozen table for all members, or from a table of each that trains.

The convolution reads all texts of a member one after another. Texts are not padded to the longest of the
batch: what is computed is the sum of their lengths, with a gap of zeros between two. A filter of width k
is k matrix products of the vectors, each shifted by one place, without a copy of them; the largest
answer within a text is the maximum of a segment.

The BiLSTM is written out, as `nn.LSTM` has no rule for `torch.vmap`. Only the centre's code is asked
for, so the forward direction reads the places up to the centre and the backward one those from the end
down to it; `nn.LSTM` computes the other halves too, for nothing. The way back is written out: autograd
would add up the gradient of each weight place by place in tensors as large as all the members' weights.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from taskmix.engine._fleet._perceptron import Masks, Parameters, linear, lower
from taskmix.engine._fleet._pool import TextPool, WindowPool
from taskmix.models import TextConvolution, WindowBiLSTM

KEY = "encoder.words.weight"


class StackedWords:
    """Ids [..., member, row] to vectors [..., member, row, dimension]."""

    def __init__(self, table: Tensor | None) -> None:
        self._table = table

    def __call__(self, parameters: Parameters, ids: Tensor) -> Tensor:
        if self._table is not None:
            return functional.embedding(ids, self._table)
        table = parameters[KEY]
        members, words, dimension = table.shape
        flat = ids + torch.arange(members, device=ids.device).unsqueeze(1) * words
        vectors = functional.embedding(flat, table.reshape(members * words, dimension))
        return vectors * (ids != 0).unsqueeze(-1)  # padding is zero, and does not train


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


class WindowBiLSTMStack:
    """Codes of windows, the two directions side by side, then the shared dense layers."""

    widths: tuple[int, ...] = ()

    def __init__(self, options: WindowBiLSTM, pool: WindowPool, words: StackedWords) -> None:
        self._pool = pool
        self._words = words
        self._dense = [f"encoder.dense.{2 * place}" for place in range(len(options.shared_layers))]

    def room(self, rows: Tensor, words: int) -> int:
        return 0

    def __call__(self, parameters: Parameters, rows: Tensor, masks: Masks, room: int) -> Tensor:
        vectors = self._words(parameters, self._pool.gather(rows))
        centre = self._pool.width
        code = torch.cat(
            [
                _last_state(parameters, "", vectors, list(range(centre + 1))),
                _last_state(
                    parameters, "_reverse", vectors, list(range(2 * centre, centre - 1, -1))
                ),
            ],
            dim=2,
        )
        for layer in self._dense:
            weight, bias = parameters[f"{layer}.weight"], parameters[f"{layer}.bias"]
            code = linear(code, weight, bias).relu_()
        return code


def _last_state(
    parameters: Parameters,
    end: str,  # of the parameters' names
    vectors: Tensor,  # [place, member, row, dimension]
    order: list[int],
) -> Tensor:
    """The state after reading the vectors of these places, one after another."""
    name = "encoder.lstm.{}_l0" + end
    of_input, of_state = (parameters[name.format(f"weight_{kind}")] for kind in ("ih", "hh"))
    bias = parameters[name.format("bias_ih")] + parameters[name.format("bias_hh")]
    lowered = lower(vectors, of_input, of_state, bias)
    return cast("Tensor", _Read.apply(*lowered, order))  # type: ignore[no-untyped-call]


class _Read(torch.autograd.Function):
    """Reads a sequence of vectors from a state of zeros; gives the last state."""

    @staticmethod
    def forward(
        ctx: Any,
        vectors: Tensor,
        of_input: Tensor,
        of_state: Tensor,
        bias: Tensor,
        order: list[int],
    ) -> Tensor:
        members, rows, hidden = vectors.shape[1], vectors.shape[2], of_state.shape[2]
        state = cell = vectors.new_zeros(members, rows, hidden)
        recurrent = vectors.new_zeros(members, rows, 4 * hidden)
        states, cells, gates = [], [cell], []
        for number, place in enumerate(order):
            if number:
                recurrent = torch.bmm(state, of_state.transpose(1, 2))
            driven = torch.baddbmm(bias.unsqueeze(1), vectors[place], of_input.transpose(1, 2))
            state, cell, open_gates = _cell(driven, recurrent, cell)
            states.append(state)
            cells.append(cell)
            gates.append(open_gates)
        ctx.order = order
        ctx.save_for_backward(vectors, of_input, of_state, *states, *cells, *gates)
        return state

    @staticmethod
    def backward(ctx: Any, of_last: Tensor) -> tuple[Tensor | None, ...]:
        vectors, of_input, of_state, *saved = ctx.saved_tensors
        length = len(ctx.order)
        states, cells, gates = saved[:length], saved[length : 2 * length + 1], saved[-length:]
        back = torch.zeros_like(vectors) if ctx.needs_input_grad[0] else None
        input_grad, state_grad = torch.zeros_like(of_input), torch.zeros_like(of_state)
        bias_grad = of_input.new_zeros(of_input.shape[:2])
        to_state, to_cell = of_last.contiguous(), torch.zeros_like(of_last)
        for number in reversed(range(length)):
            place = ctx.order[number]
            to_gates, to_cell = _cell_back(
                to_state, to_cell, cells[number], cells[number + 1], gates[number]
            )
            turned = to_gates.transpose(1, 2)
            input_grad.baddbmm_(turned, vectors[place])
            bias_grad += to_gates.sum(dim=1)
            if back is not None:
                torch.bmm(to_gates, of_input, out=back[place])
            if number:
                state_grad.baddbmm_(turned, states[number - 1])
                to_state = torch.bmm(to_gates, of_state)
        return back, input_grad, state_grad, bias_grad, None


def _cell(driven: Tensor, recurrent: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """State, cell and gates after a vector; the first two arguments are [member, row, 4 * hidden]."""
    if driven.is_cuda:  # one kernel instead of a dozen
        flat = [part.flatten(0, 1) for part in (driven, recurrent, cell)]
        state, after, gates = torch.ops.aten._thnn_fused_lstm_cell(*flat)
        return state.view_as(cell), after.view_as(cell), gates.view_as(driven)
    gates = driven + recurrent
    enter, forget, value, leave = gates.chunk(4, dim=2)
    for part in (enter, forget, leave):
        part.sigmoid_()
    value.tanh_()
    after = forget * cell + enter * value
    return leave * after.tanh(), after, gates


def _cell_back(
    to_state: Tensor, to_cell: Tensor, before: Tensor, after: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the gates, before their squashing, and of the cell before."""
    if gates.is_cuda:
        flat = [part.flatten(0, 1) for part in (to_state, to_cell, before, after, gates)]
        backward = torch.ops.aten._thnn_fused_lstm_cell_backward_impl
        to_gates, to_before, _ = backward(*flat, False)
        return to_gates.view_as(gates), to_before.view_as(before)
    enter, forget, value, leave = gates.chunk(4, dim=2)
    squashed = after.tanh()
    to_after = to_cell + to_state * leave * (1 - squashed * squashed)
    parts = [
        to_after * value * enter * (1 - enter),
        to_after * before * forget * (1 - forget),
        to_after * enter * (1 - value * value),
        to_state * squashed * leave * (1 - leave),
    ]
    return torch.cat(parts, dim=2), to_after * forget
