"""Passes of linear dynamical systems as compiled loops, sixteen sequences side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taskmix.sequences._dynamics import _covariances as plain
from taskmix.sequences._generator import kernel

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
LANES = 16  # sequences side by side; with another number sums are taken in another order

recursions = kernel(plain.recursions)
smoothed_sums = kernel(plain.smoothed_sums)


@kernel
def _forward(
    seen: Floats, lengths: Rows, first: Floats, transition: Floats, output: Floats, offset: Floats,
    gains: Floats, whitening: Floats, sizes: Floats, expected: Floats, held: Floats, logs: Floats,
) -> None:  # fmt: skip
    """Predicted and filtered means by time, and log-likelihoods up to a constant."""
    states, dimension = len(first), len(offset)
    away, size = np.empty((dimension, LANES)), np.empty(LANES)
    for lane in range(LANES):
        logs[lane] = 0.0
    for t in range(lengths[0]):
        for i in range(states):
            for lane in range(LANES):
                expected[t, i, lane] = first[i] if t == 0 else 0.0
            if t:
                for j in range(states):
                    for lane in range(LANES):
                        expected[t, i, lane] += transition[i, j] * held[t - 1, j, lane]
            for lane in range(LANES):
                held[t, i, lane] = expected[t, i, lane]
        for d in range(dimension):
            for lane in range(LANES):
                away[d, lane] = seen[t, d, lane] - offset[d]
            for i in range(states):
                for lane in range(LANES):
                    away[d, lane] -= output[d, i] * expected[t, i, lane]
        for i in range(states):
            for d in range(dimension):
                for lane in range(LANES):
                    held[t, i, lane] += gains[t, i, d] * away[d, lane]
        for d in range(dimension):
            for lane in range(LANES):
                size[lane] = 0.0
            for other in range(d + 1):
                for lane in range(LANES):
                    size[lane] += whitening[t, d, other] * away[other, lane]
            for lane in range(LANES):
                logs[lane] -= 0.5 * size[lane] * size[lane] if t < lengths[lane] else 0.0
        for lane in range(LANES):
            logs[lane] -= 0.5 * sizes[t] if t < lengths[lane] else 0.0


@kernel
def _backward(
    seen: Floats, lengths: Rows, weights: Floats, back: Floats, expected: Floats, held: Floats,
    every: Floats, cross: Floats, made: Floats, total: Floats, begin: Floats, begins: Floats,
    ends: Floats,
) -> None:  # fmt: skip
    """Smoothed means, and their weighted products added to the sums."""
    states, dimension = held.shape[1], seen.shape[1]
    smooth, after = np.zeros((states, LANES)), np.zeros((states, LANES))
    here, active = np.zeros(LANES), np.zeros(LANES)
    for t in range(lengths[0] - 1, -1, -1):
        for lane in range(LANES):
            here[lane] = weights[lane] if t < lengths[lane] else 0.0
            active[lane] = weights[lane] if t + 1 < lengths[lane] else 0.0
        for i in range(states):
            for lane in range(LANES):
                after[i, lane] = smooth[i, lane]
        for i in range(states):
            for lane in range(LANES):
                smooth[i, lane] = held[t, i, lane]
        if t + 1 < lengths[0]:
            for j in range(states):
                for lane in range(LANES):
                    going = 1.0 if t + 1 < lengths[lane] else 0.0
                    expected[t + 1, j, lane] = going * (after[j, lane] - expected[t + 1, j, lane])
            for i in range(states):
                for j in range(states):
                    for lane in range(LANES):
                        smooth[i, lane] += back[t, i, j] * expected[t + 1, j, lane]
            for i in range(states):
                for j in range(states):
                    for lane in range(LANES):
                        cross[i, j, lane] += active[lane] * after[i, lane] * smooth[j, lane]
        for i in range(states):
            for lane in range(LANES):
                total[i, lane] += here[lane] * smooth[i, lane]
            for j in range(states):
                for lane in range(LANES):
                    every[i, j, lane] += here[lane] * smooth[i, lane] * smooth[j, lane]
            for d in range(dimension):
                for lane in range(LANES):
                    made[d, i, lane] += here[lane] * seen[t, d, lane] * smooth[i, lane]
        for lane in range(LANES):
            if t == lengths[lane] - 1:
                for i in range(states):
                    for j in range(states):
                        ends[i, j] += weights[lane] * smooth[i, lane] * smooth[j, lane]
    for lane in range(LANES):
        for i in range(states):
            begin[i] += weights[lane] * smooth[i, lane]
            for j in range(states):
                begins[i, j] += weights[lane] * smooth[i, lane] * smooth[j, lane]


@kernel
def passes(
    values: Floats,  # [observation, dimension]
    starts: Rows,  # [sequence + 1]
    order: Rows,  # the sequences to pass over, longest first
    weights: Floats,  # of these
    first: Floats,
    transition: Floats,
    output: Floats,
    offset: Floats,
    gains: Floats,
    whitening: Floats,
    sizes: Floats,
    back: Floats,
    backward: bool,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]:
    """Log-likelihoods up to a constant, and weighted sums over smoothed means: of all products, of
    products with the time before, with observations, of the means, of first means and their
    products, of last products."""
    states, dimension, count = len(first), len(offset), len(order)
    longest = starts[order[0] + 1] - starts[order[0]]
    found = np.empty(count)
    every, cross = np.zeros((states, states, LANES)), np.zeros((states, states, LANES))
    made, total = np.zeros((dimension, states, LANES)), np.zeros((states, LANES))
    begin, begins, ends = np.zeros(states), np.zeros((states, states)), np.zeros((states, states))
    seen = np.zeros((longest, dimension, LANES))
    expected, held = np.empty((longest, states, LANES)), np.empty((longest, states, LANES))
    lengths, share, logs = np.empty(LANES, np.int64), np.empty(LANES), np.empty(LANES)
    for group in range(0, count, LANES):
        for lane in range(LANES):
            inside = group + lane < count
            row = order[group + lane] if inside else 0
            lengths[lane] = starts[row + 1] - starts[row] if inside else 0
            share[lane] = weights[group + lane] if inside else 0.0
            for t in range(lengths[0]):
                for d in range(dimension):
                    seen[t, d, lane] = values[starts[row] + t, d] if t < lengths[lane] else 0.0
        _forward(
            seen, lengths, first, transition, output, offset, gains, whitening, sizes, expected,
            held, logs,
        )  # fmt: skip
        for lane in range(min(LANES, count - group)):
            found[group + lane] = logs[lane]
        if backward:
            _backward(
                seen, lengths, share, back, expected, held, every, cross, made, total, begin,
                begins, ends,
            )  # fmt: skip
    return (
        found, every.sum(axis=2), cross.sum(axis=2), made.sum(axis=2), total.sum(axis=1), begin,
        begins, ends,
    )  # fmt: skip
