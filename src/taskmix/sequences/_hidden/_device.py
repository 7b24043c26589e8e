"""Forward and backward passes of hidden Markov models on a device of PyTorch.

Sequences lie time by time, longest first (as PyTorch's packed sequences do), so that a step in time is
one matrix product over all sequences that still go on. What the passes give is what `_hidden_passes`
gives; sequences whose scale vanishes get minus infinity, and nothing is added for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator import Floats

if TYPE_CHECKING:
    from torch import Tensor

    from taskmix.sequences._hidden._passes import Chain, Trails

_CELLS = 1 << 29  # numbers of forward vectors that are kept at once
_FEW_PLACES = 64  # up to here visits are counted by a product with a table of ones
_VANISHED = 1e-280  # below it a quotient may overflow: what falls below is done again in logarithms


@dataclass(frozen=True, eq=False)
class Packed:
    """Some sequences time by time: row `offsets[t] + r` is the r-th sequence at time t."""

    rows: NDArray[np.int64]  # the sequences, longest first
    places: Tensor  # [row]
    offsets: list[int]  # [time + 1]
    last: Tensor  # [sequence], the row of its last observation


def pack(trails: Trails, states: int, device: str) -> list[Packed]:
    """All sequences, in parts that fit."""
    import torch

    parts, first = [], 0
    lengths = trails.lengths[trails.order]
    while first < len(lengths):
        held = np.searchsorted(np.cumsum(lengths[first:]), max(_CELLS // states, 1)) + 1
        rows = trails.order[first : first + int(held)]
        mine = lengths[first : first + int(held)]
        going = np.searchsorted(-mine, -np.arange(int(mine[0])))
        offsets = np.concatenate([[0], np.cumsum(going)])
        places = np.empty(offsets[-1], np.int64)
        for t, count in enumerate(going):
            at = trails.starts[rows[:count]] + t
            places[offsets[t] : offsets[t + 1]] = trails.places[at]
        last = offsets[mine - 1] + np.arange(len(rows))
        parts.append(
            Packed(
                rows,
                torch.tensor(places, device=device),
                offsets.tolist(),
                torch.tensor(last, device=device),
            )
        )
        first += int(held)
    return parts


def pass_packed(
    chain: Chain, parts: list[Packed], weights: Floats | None, count: int
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Log-likelihoods [sequence] and, with weights, expected transitions, first and last states and
    visits."""
    import torch

    device = parts[0].places.device
    table, initial, transition, final = (
        torch.tensor(value, device=device)
        for value in (chain.table, chain.initial, chain.transition, chain.final)
    )
    states = len(initial)
    found = np.empty(count)
    moves, begins, ends = transition.new_zeros(states, states), initial * 0, initial * 0
    marks = torch.zeros_like(table)
    for part in parts:
        alpha, scale = _forward(part, table, initial, transition)
        held = scale > _VANISHED
        total = alpha[part.last] @ final
        steps = torch.where(held, torch.log(torch.where(held, scale, 1.0)), -torch.inf)
        logs = torch.where(total > _VANISHED, torch.log(total.clamp(_VANISHED)), -torch.inf)
        logs = logs.clone()
        for begin, end in _spans(part):
            logs[: end - begin] += steps[begin:end]
        found[part.rows] = logs.cpu().numpy()
        if weights is None:
            continue
        share = torch.tensor(weights[part.rows], device=device)[:, None]
        share = torch.where(torch.isfinite(logs)[:, None], share, 0.0)
        inverse = torch.where(held, 1 / torch.where(held, scale, 1.0), 0.0)[:, None]
        beta = share * final / total.clamp(_VANISHED)[:, None]
        ends += (alpha[part.last] * beta).sum(dim=0)
        spans = _spans(part)
        for t in range(len(spans) - 1, -1, -1):
            begin, end = spans[t]
            here = alpha[begin:end] * beta[: end - begin]
            _count(marks, part.places[begin:end], here)
            if t == 0:
                begins += here.sum(dim=0)
                break
            onward = table[part.places[begin:end]] * beta[: end - begin] * inverse[begin:end]
            before = spans[t - 1][0]
            moves += alpha[before : before + end - begin].T @ onward
            beta[: end - begin] = onward @ transition.T
    moves = moves * transition
    return (
        found,
        moves.cpu().numpy(),
        begins.cpu().numpy(),
        ends.cpu().numpy(),
        marks.cpu().numpy(),
    )


def _spans(part: Packed) -> list[tuple[int, int]]:
    return list(zip(part.offsets[:-1], part.offsets[1:], strict=True))


def _forward(
    part: Packed, table: Tensor, initial: Tensor, transition: Tensor
) -> tuple[Tensor, Tensor]:
    """Scaled forward vectors [row, state] and their scales [row]."""
    import torch

    rows = part.offsets[-1]
    alpha = table.new_empty(rows, len(initial))
    scale = table.new_empty(rows)
    before = 0
    for t, (begin, end) in enumerate(_spans(part)):
        current = alpha[begin:end]
        if t:
            torch.mm(alpha[before : before + end - begin], transition, out=current)
            current *= table[part.places[begin:end]]
        else:
            torch.mul(table[part.places[begin:end]], initial, out=current)
        total = current.sum(dim=1)
        scale[begin:end] = total
        inverse = torch.where(total > _VANISHED, 1 / total.clamp(_VANISHED), 0.0)
        current *= inverse[:, None]
        before = begin
    return alpha, scale


def _count(marks: Tensor, places: Tensor, visits: Tensor) -> None:
    """Adds visits [row, state] to those of their places; few places would wait for each other."""
    import torch

    if len(marks) > _FEW_PLACES:
        marks.index_add_(0, places, visits)
        return
    ones = torch.zeros(len(places), len(marks), dtype=visits.dtype, device=visits.device)
    ones.scatter_(1, places[:, None], 1.0)
    marks += ones.T @ visits
