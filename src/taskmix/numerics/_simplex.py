"""Distributions over tasks: points of the probability simplex, and their logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taskmix.errors import OptionError

# Shares typed by hand (0.33, 0.33, 0.34) or read from text are that far from one and no further.
SUM_TOLERANCE = 1e-3
# Shares that were divided by their sum once miss one by no more. Dividing them again would move their
# last digits, and with them the name of a run that is read back from a file.
DIVIDED = 1e-12


def as_distribution(
    values: ArrayLike, *, name: str = "probabilities", full_support: bool = False
) -> NDArray[np.float64]:
    """`values` [..., task] as float64 whose last axis sums to one.

    Refuses what is not finite, is negative, or misses one by more than a rounding of the input.
    With `full_support` a zero is refused as well: a task that is never drawn leaves no record, and
    no later policy that wants it can be judged from the log.

    >>> as_distribution([0.33, 0.33, 0.34]).tolist()
    [0.33, 0.33, 0.34]
    >>> as_distribution([1, 1])
    Traceback (most recent call last):
        ...
    taskmix.errors.OptionError: `probabilities` should sum to one. Found a sum of ...
    """
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim == 0 or shares.shape[-1] == 0:
        raise OptionError(f"`{name}` should have one number per task. Found none.")
    if not np.all(np.isfinite(shares)) or np.any(shares < 0):
        raise OptionError(f"`{name}` should be finite and not negative. Found {shares.tolist()}.")
    totals = shares.sum(axis=-1, keepdims=True)
    if np.any(np.abs(totals - 1) > SUM_TOLERANCE):
        worst = float(totals.flat[int(np.abs(totals - 1).argmax())])
        raise OptionError(
            f"`{name}` should sum to one. Found a sum of {worst:.6g}. Divide by the sum first."
        )
    if full_support and np.any(shares == 0):
        raise OptionError(
            f"`{name}` should be above zero for every task. Found {shares.tolist()}. Leave a task "
            "out altogether, or give it a small share such as 0.001."
        )
    return np.where(np.abs(totals - 1) <= DIVIDED, shares, shares / totals)


def entropy(probabilities: NDArray[np.float64], *, axis: int = -1) -> NDArray[np.float64]:
    """Shannon's entropy in nats; a share of zero adds nothing.

    >>> entropy(np.array([[0.5, 0.5], [0.75, 0.25]])).round(4).tolist()  # the first is log 2
    [0.6931, 0.5623]
    """
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1.0))
    return np.asarray(-(probabilities * logarithms).sum(axis=axis))


def mix_uniform(probabilities: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """`probabilities` with `share` of their mass spread evenly over the last axis.

    >>> mix_uniform(np.array([1.0, 0.0]), 0.5).tolist()
    [0.75, 0.25]
    """
    return np.asarray((1 - share) * probabilities + share / probabilities.shape[-1])


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
