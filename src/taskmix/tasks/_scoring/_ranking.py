"""How well scores rank the rows that are looked for above the others, and what each row adds to that.

What a row adds to a ranking, or to a ratio, is a credit: `_credits.py` says what that is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def area_of_ranks(scores: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    from scipy.stats import rankdata

    count, others = int(positive.sum()), int((~positive).sum())
    if count == 0 or others == 0:
        return float("nan")
    # Mann and Whitney: how often a positive row ranks above a negative one, ties half.
    above = rankdata(scores)[positive].sum() - count * (count + 1) / 2
    return float(above / (count * others))


def precision_of_ranks(scores: NDArray[Any], positive: NDArray[np.bool_]) -> float:
    """The mean over positive rows of the precision among all that rank as high (ties together)."""
    count = int(positive.sum())
    if count == 0 or count == len(positive):
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], positive[order]
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)  # of each group of ties
    found = np.cumsum(hits)[last]
    return float((np.diff(found, prepend=0) * found / (last + 1)).sum() / count)


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
