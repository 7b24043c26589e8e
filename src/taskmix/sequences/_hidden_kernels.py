"""Forward and backward passes of hidden Markov models as compiled loops.

Two layouts. For few states, sixteen sequences side by side (`lanes`): every step of the inner loops is
one of sixteen equal ones. For more, a batch of sequences as the rows of a matrix (`batches`), so that
the step from one time to the next is a matrix product. In both the sequences come longest first, so
that those that still go on at some time are the first of their group.

Forward vectors are scaled to sum to one. Where the scale falls below what can be held exactly, the
sequence gets the log-likelihood minus infinity and adds nothing; it is for the caller to do it again in
logarithms. `table[place]` is how likely each state makes an observation of `place`; the last row stands
for a missing one and is all ones.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._generator import kernel

Floats = NDArray[np.float64]
Places = NDArray[np.int32]
Rows = NDArray[np.int64]

LANES = 16  # sequences side by side; with another number sums are taken in another order
_SMALL = 1e-100  # a product is taken to the logarithm before it gets smaller
_VANISHED = 1e-280  # below it a quotient may overflow: what falls below is done again in logarithms
Passed = tuple[Floats, Floats, Floats, Floats, Floats]


@kernel
def _flush(product: float, scale: float) -> float:
    """The logarithm of both; minus infinity where a scale has vanished."""
    return math.log(product) + math.log(scale) if scale > _VANISHED else -math.inf


@kernel
def _lanes_forward(
    places: Places,
    lengths: Rows,
    table: Floats,
    transition: Floats,
    initial: Floats,
    alpha: Floats,
    emission: Floats,
    inverse: Floats,
    logs: Floats,
) -> None:
    """Scaled forward vectors of sixteen sequences, and the logarithms of their scales' products."""
    states = len(initial)
    product, scale = np.ones(LANES), np.empty(LANES)
    for lane in range(LANES):
        logs[lane] = 0.0
    for t in range(lengths[0]):
        for lane in range(LANES):
            scale[lane] = 0.0
        for j in range(states):
            current = alpha[t, j]
            if t == 0:
                for lane in range(LANES):
                    current[lane] = initial[j]
            else:
                for lane in range(LANES):
                    current[lane] = 0.0
                for i in range(states):
                    step = transition[i, j]
                    before = alpha[t - 1, i]
                    for lane in range(LANES):
                        current[lane] += before[lane] * step
            for lane in range(LANES):
                emission[t, j, lane] = table[places[t, lane], j]
            for lane in range(LANES):
                current[lane] *= emission[t, j, lane]
                scale[lane] += current[lane]
        least = 1.0
        for lane in range(LANES):
            inverse[t, lane] = 1 / scale[lane] if scale[lane] > _VANISHED else 0.0
            if t >= lengths[lane]:
                scale[lane] = 1.0
            least = min(least, min(scale[lane], product[lane]))
        if least < _SMALL:
            for lane in range(LANES):
                logs[lane] += _flush(product[lane], scale[lane])
                product[lane] = 1.0
        else:
            for lane in range(LANES):
                product[lane] *= scale[lane]
        for j in range(states):
            for lane in range(LANES):
                alpha[t, j, lane] *= inverse[t, lane]
    for lane in range(LANES):
        logs[lane] += _flush(product[lane], 1.0)


@kernel
def _lanes_backward(
    places: Places,
    lengths: Rows,
    weights: Floats,
    transition: Floats,
    final: Floats,
    ending: Floats,
    alpha: Floats,
    emission: Floats,
    inverse: Floats,
    moves: Floats,
    begins: Floats,
    ends: Floats,
    marks: Floats,
) -> None:
    """Adds the weighted statistics of sixteen sequences."""
    states = len(final)
    beta, onward, active = np.zeros((states, LANES)), np.zeros((states, LANES)), np.empty(LANES)
    for t in range(lengths[0] - 1, -1, -1):
        if t + 1 < lengths[0]:
            for lane in range(LANES):
                active[lane] = weights[lane] if t + 1 < lengths[lane] else 0.0
            for j in range(states):
                for lane in range(LANES):
                    onward[j, lane] = (
                        emission[t + 1, j, lane] * beta[j, lane] * inverse[t + 1, lane]
                    )
            for i in range(states):
                row = beta[i]
                before = alpha[t, i]
                for lane in range(LANES):
                    row[lane] = 0.0
                for j in range(states):
                    step = transition[i, j]
                    total = moves[i, j]
                    for lane in range(LANES):
                        row[lane] += step * onward[j, lane]
                        total[lane] += active[lane] * before[lane] * onward[j, lane]
        for lane in range(LANES):
            if t == lengths[lane] - 1:
                for i in range(states):
                    beta[i, lane] = final[i] * ending[lane]
                    ends[i] += weights[lane] * alpha[t, i, lane] * beta[i, lane]
        for lane in range(LANES):
            if t < lengths[lane]:
                mark = marks[places[t, lane]]
                for i in range(states):
                    mark[i] += weights[lane] * alpha[t, i, lane] * beta[i, lane]
    for i in range(states):
        for lane in range(LANES):
            begins[i] += weights[lane] * alpha[0, i, lane] * beta[i, lane]


@kernel
def lanes(
    places: Places,  # [observation]
    starts: Rows,  # [sequence + 1]
    order: Rows,  # the sequences to pass over, longest first
    weights: Floats,  # of these
    table: Floats,  # [place, state]
    initial: Floats,
    transition: Floats,
    final: Floats,
    backward: bool,
) -> Passed:
    """Log-likelihoods in the order given, then weighted counts of transitions, of first and of last
    states, and of states at each place."""
    states, count = len(initial), len(order)
    missing = len(table) - 1
    longest = starts[order[0] + 1] - starts[order[0]]
    found = np.empty(count)
    moves, begins, ends = np.zeros((states, states, LANES)), np.zeros(states), np.zeros(states)
    marks = np.zeros(table.shape if backward else (1, states))
    alpha, emission = np.empty((longest, states, LANES)), np.empty((longest, states, LANES))
    inverse, local = np.empty((longest, LANES)), np.empty((longest, LANES), np.int32)
    lengths, share = np.empty(LANES, np.int64), np.empty(LANES)
    logs, ending = np.empty(LANES), np.empty(LANES)
    for first in range(0, count, LANES):
        for lane in range(LANES):
            inside = first + lane < count
            row = order[first + lane] if inside else 0
            lengths[lane] = starts[row + 1] - starts[row] if inside else 0
            share[lane] = weights[first + lane] if inside else 0.0
            for t in range(lengths[0]):
                local[t, lane] = places[starts[row] + t] if t < lengths[lane] else missing
        _lanes_forward(local, lengths, table, transition, initial, alpha, emission, inverse, logs)
        for lane in range(LANES):
            total = 0.0
            if lengths[lane]:
                for j in range(states):
                    total += alpha[lengths[lane] - 1, j, lane] * final[j]
                found[first + lane] = logs[lane] + _flush(1.0, total)
            possible = total > _VANISHED and logs[lane] > -math.inf
            ending[lane] = 1 / total if possible else 0.0
        if backward:
            _lanes_backward(
                local, lengths, share, transition, final, ending, alpha, emission, inverse, moves,
                begins, ends, marks,
            )  # fmt: skip
    return found, moves.sum(axis=2) * transition, begins, ends, marks


@kernel
def batches(
    places: Places,
    starts: Rows,
    order: Rows,
    weights: Floats,
    table: Floats,
    initial: Floats,
    transition: Floats,
    final: Floats,
    backward: bool,
    size: int,
) -> Passed:
    """As `lanes`, `size` sequences at a time."""
    states, count = len(initial), len(order)
    found = np.empty(count)
    moves, begins, ends = np.zeros((states, states)), np.zeros(states), np.zeros(states)
    marks = np.zeros(table.shape if backward else (1, states))
    longest = starts[order[0] + 1] - starts[order[0]]
    kept = longest if backward else 2  # times whose forward vectors are kept
    alpha, onward = np.zeros((kept * size, states)), np.zeros((kept * size, states))
    beta, inverse = np.empty((size, states)), np.empty((longest, size))
    product, logs, ending = np.empty(size), np.empty(size), np.empty(size)
    turned = np.ascontiguousarray(transition.T)
    for first in range(0, count, size):
        rows = order[first : first + size]
        lengths = starts[rows + 1] - starts[rows]
        going = len(rows)
        product[:] = 1.0
        logs[:] = 0.0
        for t in range(lengths[0]):
            while lengths[going - 1] <= t:
                going -= 1
            at = (t % kept) * size
            current = alpha[at : at + going]
            if t:
                back = ((t - 1) % kept) * size
                np.dot(alpha[back : back + going], transition, current)
            for r in range(going):
                made = table[places[starts[rows[r]] + t]]
                scale = 0.0
                for j in range(states):
                    value = (current[r, j] if t else initial[j]) * made[j]
                    current[r, j] = value
                    scale += value
                if min(scale, product[r]) < _SMALL:
                    logs[r] += _flush(product[r], scale)
                    product[r] = 1.0
                else:
                    product[r] *= scale
                inverse[t, r] = 1 / scale if scale > _VANISHED else 0.0
                for j in range(states):
                    current[r, j] *= inverse[t, r]
                if t == lengths[r] - 1:
                    total = 0.0
                    for j in range(states):
                        total += current[r, j] * final[j]
                    found[first + r] = logs[r] + _flush(product[r], 1.0) + _flush(1.0, total)
                    ending[r] = 1 / total if found[first + r] > -math.inf else 0.0
            if backward:
                alpha[at + going : at + size] = 0.0
        if not backward:
            continue
        going = 0
        for t in range(lengths[0] - 1, -1, -1):
            at, next_at, before = t * size, (t + 1) * size, going
            if t + 1 < lengths[0]:
                for r in range(before):
                    made = table[places[starts[rows[r]] + t + 1]]
                    for j in range(states):
                        onward[next_at + r, j] = made[j] * beta[r, j] * inverse[t + 1, r]
                np.dot(onward[next_at : next_at + before], turned, beta[:before])
                for r in range(before):
                    for j in range(states):
                        onward[next_at + r, j] *= weights[first + r]
                onward[next_at + before : next_at + size] = 0.0
            while going < len(rows) and lengths[going] > t:
                going += 1
            for r in range(going):
                mark, share = marks[places[starts[rows[r]] + t]], weights[first + r]
                if r >= before:
                    for j in range(states):
                        beta[r, j] = final[j] * ending[r]
                        ends[j] += share * alpha[at + r, j] * beta[r, j]
                for j in range(states):
                    mark[j] += share * alpha[at + r, j] * beta[r, j]
        for r in range(len(rows)):
            for j in range(states):
                begins[j] += weights[first + r] * alpha[r, j] * beta[r, j]
        if lengths[0] > 1:
            moves += np.dot(alpha[: (lengths[0] - 1) * size].T, onward[size : lengths[0] * size])
    return found, moves * transition, begins, ends, marks
