r"""Rows that lie far off: Huber's loss, with a scale chosen by the data, where they speak for it.

    Huber, "Robust Estimation of a Location Parameter", Ann. Math. Statist. 35, 1964: a deviation counts
    by its square up to $k s$ and in proportion beyond, which is likelihood for normal noise with
    exponential tails.

With $k = 1.345$ 5 % are lost if the noise is normal after all. The scale $s$ is the likeliest one.
Whether the loss is used is decided by likelihood too: the same deviations under normal noise of one
size are to be less likely by far.
"""

from __future__ import annotations

from math import erf, exp, log, pi, sqrt

import numpy as np

from taskmix.laws._forms import Array

BEND = 1.345  # Huber's k
HEAVY_TAILS = 10.0  # nats, by which tails have to be likelier than normal noise
SCALE_STEPS = 40  # towards the likeliest scale
_TAILED = log(sqrt(2 * pi) * erf(BEND / sqrt(2)) + 2 / BEND * exp(-(BEND**2) / 2))
_NORMAL = 0.5 * log(2 * pi)


def huber_loss(deviations: Array, bound: float) -> Array:
    """Squares up to the bound, straight lines beyond.

    >>> huber_loss(np.array([1.0, -3.0]), 2.0)
    array([1., 8.])
    """
    if not np.isfinite(bound):
        return np.asarray(deviations**2)
    size = np.abs(deviations)
    return np.asarray(np.where(size <= bound, deviations**2, 2 * bound * size - bound**2))


def huber_weights(deviations: Array, bound: float) -> Array:
    """What a square is multiplied by in a least-squares step: 1 up to the bound, less beyond."""
    size = np.maximum(np.abs(deviations), 1e-300)
    return np.asarray(np.minimum(1.0, bound / size))


def huber_scale(deviations: Array) -> float:
    """The likeliest s of Huber's noise: sum of psi(r / s) r / s is the number of rows."""
    scale = float(np.median(np.abs(deviations))) * 1.4826
    if scale <= 0:
        return 0.0
    for _ in range(SCALE_STEPS):
        clipped = np.clip(deviations / scale, -BEND, BEND)
        new = float(np.mean(clipped * deviations))
        if abs(new - scale) <= 1e-9 * scale:
            break
        scale = new
    return scale


def tail_evidence(deviations: Array) -> float:
    """Nats by which Huber's noise is likelier than normal noise, each with its likeliest scale."""
    rows, scale = len(deviations), huber_scale(deviations)
    if scale <= 0:
        return 0.0
    normal = rows * (log(float(np.sqrt(np.mean(deviations**2)))) + 0.5 + _NORMAL)
    losses = 0.5 * float(np.sum(huber_loss(deviations / scale, BEND)))
    return normal - (losses + rows * (log(scale) + _TAILED))


def huber_bound(deviations: Array, *, always: bool = False) -> float:
    """Where the loss bends, in the deviations' unit; infinite where nothing speaks for tails."""
    usable = np.isfinite(deviations).all() and np.any(deviations)
    if not usable or not (always or tail_evidence(deviations) > HEAVY_TAILS):
        return float("inf")
    scale = huber_scale(deviations)
    return BEND * scale if scale > 0 else float("inf")
