"""What each row of written text adds to a metric, as `row_credits` says it of rows with a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taskmix.tasks._scoring._influence import ratio_credits
from taskmix.tasks._scoring._metrics import evaluate_written
from taskmix.tasks._scoring._written import WrittenText


def written_credits(
    metric: str,
    *,
    loss: NDArray[
        Any
    ],  # [row], the sum over its pieces of minus the logarithm of their probability
    right: NDArray[Any],  # [row], pieces that were the first choice
    pieces: NDArray[Any],  # [row]
    sizes: NDArray[Any] | None = None,  # [row], the bytes that its pieces spell
    answers: Sequence[tuple[str, str]] = (),  # [row], the model's and the true one
) -> NDArray[np.float64]:
    """What each row adds to `evaluate_written`: values whose mean is the metric; NaN without pieces.

    >>> loss, right, pieces = np.array([0.1, 2.0]), np.array([2, 1]), np.array([2, 2])
    >>> written_credits("exact_match", loss=loss, right=right, pieces=pieces).tolist()
    [1.0, 0.0]
    """
    known = pieces > 0
    found = np.full(len(pieces), np.nan)
    if np.isnan(loss).any():
        return found

    def of_metric(name: str) -> NDArray[np.float64]:
        if name == "exact_match":
            return np.asarray((right == pieces)[known], dtype=np.float64)
        if name == "token_accuracy":
            return ratio_credits(right[known], pieces[known])
        if name == "bits_per_byte":
            if sizes is None or sizes[known].sum() == 0:
                return np.full(known.sum(), np.nan)
            return ratio_credits(loss[known] / math.log(2), sizes[known])
        alone = (
            WrittenText(answers=(pair,))
            for pair, is_known in zip(answers, known, strict=True)
            if is_known
        )
        return np.array([evaluate_written(name, text) for text in alone])

    found[known] = np.mean([of_metric(name) for name in metric.split("+")], axis=0)
    return found
