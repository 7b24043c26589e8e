r"""Covariances and gains of a linear dynamical system, which do not depend on the data.

    Kalman, 1960; Rauch, Tung and Striebel, 1965; in the form of Bishop, "Pattern Recognition and
    Machine Learning", section 13.3.

They are the same for all sequences of one generator, so they are computed once for the longest.
Smoothed covariances depend on where a sequence ends, but linearly on those of the next time: their
weighted sum over sequences of all lengths has a recursion of its own.

This is plain NumPy that numba can compile as it stands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def recursions(
    transition: Floats,  # A [state, state]
    noise: Floats,  # Q
    output: Floats,  # C [dimension, state]
    output_noise: Floats,  # R
    first: Floats,  # covariance of the first state
    times: int,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """By time: covariances predicted and filtered, gains, whitening matrices and log-determinants of
    what is predicted of the observation, and gains of the smoother towards the next time."""
    states, dimension = len(transition), len(output)
    predicted = np.empty((times, states, states))
    held = np.empty((times, states, states))
    gains = np.empty((times, states, dimension))
    whitening = np.empty((times, dimension, dimension))
    sizes = np.empty(times)
    back = np.zeros((times, states, states))
    current = np.ascontiguousarray(first)
    turned, output_turned = np.ascontiguousarray(transition.T), np.ascontiguousarray(output.T)
    for t in range(times):
        predicted[t] = current
        spread = np.dot(current, output_turned)
        innovation = np.dot(output, spread) + output_noise
        factor = np.linalg.cholesky(innovation)
        inverse = np.linalg.inv(factor)
        whitening[t] = inverse
        sizes[t] = 2 * np.log(np.diag(factor)).sum()
        gains[t] = np.dot(np.dot(spread, np.ascontiguousarray(inverse.T)), inverse)
        filtered = current - np.dot(gains[t], np.ascontiguousarray(spread.T))
        filtered = (filtered + filtered.T) / 2
        held[t] = filtered
        moved = np.dot(filtered, turned)
        current = np.dot(transition, moved) + noise
        back[t] = np.dot(moved, np.linalg.inv(current))
    return predicted, held, gains, whitening, sizes, back


def smoothed_sums(
    predicted: Floats,
    held: Floats,
    back: Floats,
    ending: Floats,  # [time], the weight of the sequences whose last observation is there
) -> tuple[Floats, Floats, Floats, Floats]:
    """Weighted sums of smoothed covariances: at all times, at the first, at the last, and between
    each time and the one before."""
    times, states = held.shape[0], held.shape[1]
    every, cross = np.zeros((states, states)), np.zeros((states, states))
    last = np.zeros((states, states))
    current = np.zeros((states, states))
    beyond = 0.0
    for t in range(times - 1, -1, -1):
        gain = back[t]
        turned = np.ascontiguousarray(gain.T)
        if beyond > 0:
            cross += np.dot(current, turned)
            carried = current - beyond * predicted[t + 1]
            current = beyond * held[t] + np.dot(np.dot(gain, carried), turned)
        current = current + ending[t] * held[t]
        last += ending[t] * held[t]
        beyond += ending[t]
        every += current
    return every, current, last, cross
