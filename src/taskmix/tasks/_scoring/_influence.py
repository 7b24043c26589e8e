"""What each row adds to one ratio, or to one ranking: values whose mean is the measure's own.

`_credits.py` says what a credit is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def ratio_credits(
    parts: NDArray[Any],  # [row]
    wholes: NDArray[Any],  # [row]
) -> Values:
    """[row] of the sum of `parts` divided by the sum of `wholes`; where that is 0, the ratio is too.

    The ratio's own change with a row: R + (part - R * whole) / the mean whole.
    """
    total = wholes.sum()
    if total == 0:
        return np.zeros(len(parts))
    ratio = parts.sum() / total
    result: Values = ratio + (parts - ratio * wholes) * (len(wholes) / total)
    return result


def area_credits(scores: Values, positive: NDArray[np.bool_]) -> Values | None:
    above, below = np.sort(scores[positive]), np.sort(scores[~positive])
    if len(above) == 0 or len(below) == 0:
        return None
    # A row's placement: the share of the rows of the other kind that it is on the right side of.
    placements = np.empty(len(scores))
    placements[positive] = share_below(below, scores[positive])
    placements[~positive] = 1 - share_below(above, scores[~positive])
    area = placements[positive].mean()
    shares = np.where(positive, len(above), len(below)) / len(scores)
    result: Values = area + (placements - area) / shares
    return result


def share_below(ordered: Values, scores: Values) -> Values:
    """[row] the share of some ordered scores that is lower than each, equal ones half."""
    lower = np.searchsorted(ordered, scores, side="left")
    result: Values = (lower + np.searchsorted(ordered, scores, side="right")) / (2 * len(ordered))
    return result


def precision_credits(scores: Values, positive: NDArray[np.bool_]) -> Values | None:
    count, total = int(positive.sum()), len(scores)
    if count in (0, total):
        return None
    order = np.argsort(-scores, kind="stable")
    ordered = -scores[order]
    last = np.searchsorted(ordered, ordered, side="right")  # rows at or above each one, by score
    precision = np.cumsum(positive[order])[last - 1] / last
    value = precision[positive[order]].mean()
    # A row moves the precision at its own place and at every positive row's below it or beside it.
    weights = np.where(positive[order], 1 / last, 0.0)
    first = np.searchsorted(ordered, ordered, side="left")

    def at_or_below(values: Values) -> Values:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        result: Values = sums[-1] - sums[first]
        return result

    moved = positive[order] * at_or_below(weights) - at_or_below(weights * precision)
    changes = positive[order] * (precision - value) + moved
    result = np.empty(total)
    result[order] = value + changes * (total / count)
    return result
