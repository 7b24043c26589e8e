"""Sums and distributions held as logarithms, so that no weight overflows however long it grows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def log_sum_exp(values: NDArray[np.float64], *, axis: int = -1) -> NDArray[np.float64]:
    """The logarithm of the sum of exponentials along `axis`, which is dropped.

    Minus infinity stands for a weight of zero; a sum of nothing but zeros is minus infinity.

    >>> np.exp(log_sum_exp(np.log(np.array([1.0, 2.0, 5.0])))).round(6).item()
    8.0
    >>> float(log_sum_exp(np.array([-np.inf, -np.inf])))
    -inf
    """
    highest = values.max(axis=axis, keepdims=True)
    # Minus infinity minus itself is not a number; any finite shift gives the right zero.
    shift = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - shift).sum(axis=axis))
    return np.asarray(total + shift.squeeze(axis=axis))


def softmax(logits: NDArray[np.float64], *, axis: int = -1) -> NDArray[np.float64]:
    """Probabilities in proportion to the exponential of `logits`.

    >>> softmax(np.log(np.array([1.0, 3.0]))).round(6).tolist()
    [0.25, 0.75]
    """
    weights = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))


def log_softmax(logits: NDArray[np.float64], *, axis: int = -1) -> NDArray[np.float64]:
    """The logarithm of `softmax`, exact where the probability itself is too small to hold.

    >>> log_softmax(np.array([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    shifted = logits - logits.max(axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)))
