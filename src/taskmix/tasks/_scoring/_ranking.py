"""How well scores rank the rows that are looked for above the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
