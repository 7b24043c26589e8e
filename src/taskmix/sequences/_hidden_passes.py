r"""Forward and backward passes over hidden states, by the layout that suits the number of states.

    Rabiner, "A Tutorial on Hidden Markov Models", Proc. IEEE 1989, Eqs. 19 to 37 and section V.A.

The probability of a sequence is $\sum_z \pi(z_1) \prod_t A(z_t, z_{t+1}) \prod_t b_{z_t}(x_t)\,
f(z_n)$ over paths z of states. With halting, f is the probability to stop and the rows of A sum to
1 − f; without, f is one. Passes are scaled; sequences whose scale cannot be held are done again in
logarithms.

On a device of PyTorch sequences lie time by time, longest first (as its packed sequences do), so that a
step in time is one matrix product over all that still go on. The results are the same; sequences whose
scale vanishes get minus infinity, and nothing is added for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from taskmix.numerics import log_sum_exp, softmax
from taskmix.sequences._generator import Floats, compiled, safe_log

if TYPE_CHECKING:
    from torch import Tensor


Rows = NDArray[np.int64]

FEW_STATES = 3  # up to here sixteen sequences side by side are faster than matrix products
_BATCH = 32  # sequences of a matrix product
_BYTES = 1 << 26  # that the kept forward and backward vectors may take


@dataclass(frozen=True, eq=False)
class Chain:
    """One hidden Markov model over given observations."""

    initial: Floats  # [state]
    transition: Floats  # [state, state]
    final: Floats  # [state]
    table: (
        Floats  # [place, state], how likely a state makes what is observed there; the last is ones
    )
    log_table: Floats | None = None  # its logarithm, where the table itself may have vanished

    @property
    def logs(self) -> Floats:
        return safe_log(self.table) if self.log_table is None else self.log_table


@dataclass(frozen=True, eq=False)
class Trails:
    """Observations by their place in the table, sequence by sequence."""

    places: NDArray[np.int32]  # [observation]
    starts: Rows  # [sequence + 1]
    order: Rows  # sequences, longest first
    device: str = "cpu"
    packed: list[Packed] = field(default_factory=list)  # once the device has been asked for

    @property
    def lengths(self) -> Rows:
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class Passed:
    """What passes over weighted sequences found."""

    log_likelihood: Floats  # [sequence]; minus infinity where a sequence has no weight
    moves: Floats  # [state, state], expected transitions
    begins: Floats  # [state], expected first states
    ends: Floats  # [state], expected last states
    marks: Floats  # [place, state], expected visits


def make_trails(places: NDArray[np.int32], starts: Rows, device: str = "cpu") -> Trails:
    return Trails(places, starts, np.argsort(-np.diff(starts), kind="stable"), device)


def forward(chain: Chain, trails: Trails) -> Floats:
    """[sequence], log-likelihoods."""
    if trails.device != "cpu":
        found = _on_device(chain, trails, None)[0]
    else:
        everyone = np.ones(len(trails.order))
        found = np.empty(len(trails.order))
        found[trails.order] = _pass(chain, trails, trails.order, everyone, backward=False)[0]
    for row in np.flatnonzero(np.isneginf(found)):
        found[row] = _in_logs(chain, _sequence(trails, row)).log_likelihood[0]
    return found


def forward_backward(chain: Chain, trails: Trails, weights: Floats) -> Passed:
    """Weighted statistics; sequences of weight zero are passed over."""
    order = trails.order[weights[trails.order] > 0]
    states = len(chain.initial)
    likelihood = np.full(len(weights), -np.inf)
    if not len(order):
        empty = np.zeros(states)
        return Passed(
            likelihood, np.zeros((states, states)), empty, empty, np.zeros_like(chain.table)
        )
    if trails.device != "cpu":
        whole, moves, begins, ends, marks = _on_device(chain, trails, weights)
        likelihood[order] = whole[order]
    else:
        found, moves, begins, ends, marks = _pass(
            chain, trails, order, weights[order], backward=True
        )
        likelihood[order] = found
    for row in order[np.isneginf(likelihood[order])]:
        places = _sequence(trails, row)
        slow = _in_logs(chain, places)
        likelihood[row] = slow.log_likelihood[0]
        if np.isneginf(likelihood[row]):
            continue
        moves += weights[row] * slow.moves
        begins += weights[row] * slow.begins
        ends += weights[row] * slow.ends
        np.add.at(marks, places, weights[row] * slow.marks)
    return Passed(likelihood, moves, begins, ends, marks)


def filtered(chain: Chain, trails: Trails) -> tuple[Floats, Floats]:
    """The probability of each state after each observation [observation, state], and the logarithm
    of how likely the observation was, given those before it."""
    alpha, scale = _filtered(chain, trails)
    logs = safe_log(scale)
    broken = np.unique(np.searchsorted(trails.starts, np.flatnonzero(scale == 0), "right") - 1)
    for row in broken:
        span = slice(trails.starts[row], trails.starts[row + 1])
        forwards = _log_forward(chain, trails.places[span])
        totals = log_sum_exp(forwards)
        alpha[span] = softmax(np.where(np.isneginf(totals)[:, None], 0.0, forwards))
        with np.errstate(invalid="ignore"):
            logs[span] = np.nan_to_num(np.diff(totals, prepend=0.0), nan=-np.inf, neginf=-np.inf)
    return alpha, logs


def _sequence(trails: Trails, row: int | np.integer[Any]) -> NDArray[np.int32]:
    return trails.places[trails.starts[row] : trails.starts[row + 1]]


def _on_device(
    chain: Chain, trails: Trails, weights: Floats | None
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    if not trails.packed:
        trails.packed.extend(pack(trails, len(chain.initial), trails.device))
    return pass_packed(chain, trails.packed, weights, len(trails.order))


def _pass(
    chain: Chain, trails: Trails, order: Rows, weights: Floats, *, backward: bool
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    kernels = compiled("hidden")
    if kernels is None:
        return _batch(chain, trails, order, weights, backward=backward)
    given = (
        trails.places, trails.starts, order, weights, chain.table, chain.initial,
        np.ascontiguousarray(chain.transition), chain.final, backward,
    )  # fmt: skip
    if len(chain.initial) <= FEW_STATES:
        return kernels.lanes(*given)  # type: ignore[no-any-return]
    longest = int(trails.lengths[order[0]])
    fitting = _BYTES // (16 * len(chain.initial) * (longest if backward else 2))
    return kernels.batches(*given, max(1, min(_BATCH, fitting)))  # type: ignore[no-any-return]


def _filtered(chain: Chain, trails: Trails, order: Rows | None = None) -> tuple[Floats, Floats]:
    """Scaled forward vectors and their scales in plain NumPy, all sequences at once; a scale of zero
    where it cannot be held."""
    rows = trails.order if order is None else order
    alpha = np.zeros((len(trails.places), len(chain.initial)))
    scale = np.ones(len(trails.places))
    lengths = trails.lengths[rows]
    for t in range(int(lengths[0]) if len(rows) else 0):
        at = trails.starts[rows[: np.searchsorted(-lengths, -t)]] + t
        before = alpha[at - 1] @ chain.transition if t else chain.initial
        current = before * chain.table[trails.places[at]]
        total = current.sum(axis=1)
        held = total > 1e-280
        scale[at] = np.where(held, total, 0.0)
        alpha[at] = current * np.where(held, 1 / np.where(held, total, 1.0), 0.0)[:, None]
    return alpha, scale


def _batch(
    chain: Chain, trails: Trails, order: Rows, weights: Floats, *, backward: bool
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """What the compiled passes do, in plain NumPy."""
    alpha, scale = _filtered(chain, trails, order)
    lengths = trails.lengths[order]
    first, last = trails.starts[order], trails.starts[order + 1] - 1
    total = alpha[last] @ chain.final
    steps = np.add.reduceat(safe_log(scale), trails.starts[:-1])[order]
    found = steps + safe_log(total)
    marks = np.zeros_like(chain.table)
    if not backward:
        return found, marks, marks, marks, marks
    possible = np.isfinite(found)
    inverse = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1.0), 0.0)
    visits, onward = np.zeros_like(alpha), np.zeros_like(alpha)
    beta = np.where(possible, 1 / np.where(possible, total, 1.0), 0.0)[:, None] * chain.final
    for t in range(int(lengths[0]) - 1, -1, -1):
        going, next_going = np.searchsorted(-lengths, [-t, -t - 1])
        at = first[:going] + t
        after = at[:next_going] + 1
        onward[after] = chain.table[trails.places[after]] * beta[:next_going]
        onward[after] *= inverse[after][:, None]
        beta[:next_going] = onward[after] @ chain.transition.T
        onward[after] *= weights[:next_going, None]
        visits[at] = weights[:going, None] * alpha[at] * beta[:going]
    later = np.ones(len(alpha), np.bool_)
    later[trails.starts[:-1]] = False
    inner = np.flatnonzero(later)
    moves = (alpha[inner - 1].T @ onward[inner]) * chain.transition
    np.add.at(marks, trails.places, visits)
    return found, moves, visits[first].sum(axis=0), visits[last].sum(axis=0), marks


def _log_forward(chain: Chain, places: NDArray[np.int32]) -> Floats:
    emission, transition = chain.logs[places], safe_log(chain.transition)
    found = np.empty_like(emission)
    for t in range(len(places)):
        before = log_sum_exp(found[t - 1][:, None] + transition, axis=0) if t else None
        found[t] = (safe_log(chain.initial) if before is None else before) + emission[t]
    return found


def _in_logs(chain: Chain, places: NDArray[np.int32]) -> Passed:
    """One sequence in logarithms; `marks` are by observation here."""
    emission, transition = chain.logs[places], safe_log(chain.transition)
    ahead = _log_forward(chain, places)
    behind = np.empty_like(ahead)
    behind[-1] = safe_log(chain.final)
    for t in range(len(places) - 2, -1, -1):
        behind[t] = log_sum_exp(transition + (emission[t + 1] + behind[t + 1]), axis=1)
    total = log_sum_exp(ahead[-1] + behind[-1])
    states = len(chain.initial)
    if np.isneginf(total):
        nothing = np.zeros((len(places), states))
        return Passed(total[None], np.zeros((states, states)), nothing[0], nothing[0], nothing)
    visits = np.exp(ahead + behind - total)
    moves = np.zeros((states, states))
    for t in range(len(places) - 1):
        onward = emission[t + 1] + behind[t + 1]
        moves += np.exp(ahead[t][:, None] + transition + onward - total)
    return Passed(total[None], moves, visits[0], visits[-1], visits)


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
