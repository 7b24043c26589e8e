r"""Shares of a budget that take the learning curves of logs the farthest.

The mean performance at the end, $\frac1N\sum_k f_k(p_k T)$ with $f_k$ the curve of task k, is maximised
over shares of at least a quarter of a uniform one, `LEAST`, and at most eight times it, `MOST`: beyond
that a curve from a log of equal shares is nothing but its tail. At a price for a visit every task takes
the share that is worth the most to it, whatever the others do; the price is the one at which the shares
sum to one. Where a curve bends upwards the two shares beside the gap are mixed, so the answer is the
maximum for the concave curves nearest above.

Curves err where they are followed far, and know nothing of transfer between tasks. This division alone
is not safe; `improve_policy` moves from uniform shares towards it as far as held-out rows agree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

LEAST, MOST = 0.25, 8.0  # of a uniform share
GRID_STEPS = 80  # between them; a step is 4 % of a share
BISECTIONS = 60  # of the price, to the rounding of a float


def curve_shares(
    curve: Callable[
        [NDArray[np.float64]], NDArray[np.float64]
    ],  # visits [..., task] to performance
    *,
    budget: float,
    task_count: int,
) -> NDArray[np.float64]:
    """The shares [task] of the largest mean performance after `budget` steps.

    What no task would gain from is divided equally, so flat curves have uniform shares.
    """
    grid = np.unique([*np.geomspace(LEAST, MOST, GRID_STEPS + 1), 1.0]) / task_count
    worth = curve(np.repeat(budget * grid[:, None], task_count, axis=1))  # [place, task]

    def taken(price: float) -> NDArray[np.float64]:
        # Of places worth the same the first: nothing is taken for nothing.
        return np.asarray(grid[(worth - price * grid[:, None]).argmax(axis=0)])

    most = taken(0.0)
    if most.sum() <= 1:
        return np.asarray(most + (1 - most.sum()) / task_count)
    low, high = 0.0, float(np.ptp(worth, axis=0).max() / np.diff(grid).min())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle).sum() > 1 else (low, middle)
    more, fewer = taken(low), taken(high)
    gap = more.sum() - fewer.sum()
    part = (1 - fewer.sum()) / gap if gap > 0 else 0.0
    return np.asarray(part * more + (1 - part) * fewer)
