"""The window BiLSTM for all members at once (`nn.LSTM` has no rule for `torch.vmap`).

Only the centre's code is asked for, so the forward direction reads the places up to the centre and
the backward one those from the end down to it; `nn.LSTM` computes the other halves too, for nothing.
The way back is written out: autograd would add up the gradient of each weight place by place in
tensors as large as all the members' weights.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from taskmix.engine._fleet._perceptron import Masks, Parameters, linear, lower
from taskmix.engine._fleet._pool import WindowPool
from taskmix.engine._fleet._words import StackedWords
from taskmix.models import WindowBiLSTM


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
