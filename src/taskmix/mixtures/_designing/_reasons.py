"""Why a run is worth its cost, in words."""

from __future__ import annotations

import numpy as np

from taskmix.mixtures._designing._filling import root_distances
from taskmix.mixtures._designing._gaining import Beliefs
from taskmix.mixtures._table import Floats

TOLD_APART = 0.01  # shares that differ by less are the same to a reader
NEAR = 0.12  # distance of roots of shares within which a run is on the recommended mixture


def reason_of(
    run: Floats,  # [domain]
    after: Beliefs,  # after this run alone
    contenders: Floats,  # [contender, domain]
    domains: tuple[str, ...],
) -> str:
    """What the run settles: the share that differs most between the choices it may lead to."""
    chosen = contenders[np.argmin(after.targets(), axis=1)]  # [draw, domain]
    low, high = np.quantile(chosen, [0.1, 0.9], axis=0)
    place = int(np.argmax(high - low))
    now = contenders[after.chosen]
    if high[place] - low[place] >= TOLD_APART:
        return f"settles the share of {domains[place]}: {low[place]:.2f} or {high[place]:.2f}"
    if root_distances(run[None], now[None])[0, 0] <= NEAR:
        return "checks the mixture that looks best"
    place = int(np.argmax(np.abs(np.sqrt(run) - np.sqrt(now))))
    return (
        f"tells what {domains[place]} teaches: its share is {run[place]:.2f} here, "
        f"{now[place]:.2f} in the mixture that looks best"
    )
